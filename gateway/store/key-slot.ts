export const SLOTS = 16_384;

const CRC = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** @param key ASCII. The text between the first { and the next } is hashed; without one, the whole key. */
export function keySlot(key: string): number {
  let from = 0;
  let to = key.length;
  const open = key.indexOf('{');
  if (open >= 0) {
    const close = key.indexOf('}', open + 1);
    if (close > open + 1) {
      from = open + 1;
      to = close;
    }
  }
  let crc = 0;
  for (let at = from; at < to; at++) {
    crc = ((crc << 8) & 0xffff) ^ (CRC[(crc >> 8) ^ key.charCodeAt(at)] ?? 0);
  }
  return crc % SLOTS;
}
