/** Computes the slot of a key, and parses replies about slots (CLUSTER SLOTS and redirections). */
import type { Endpoint } from './address.ts';

export const SLOTS = 16_384;

const CRC = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/**
 * Computes the slot of a key: CRC-16/XMODEM of its hash tag, modulo 16384.
 *
 * @param key ASCII. The text between the first { and the next } is hashed; without one, the whole key.
 */
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

export interface SlotRange {
  readonly first: number;
  /** The last slot of the range, inclusive. */
  readonly last: number;
  readonly primary: Endpoint;
}

/**
 * @param reply of CLUSTER SLOTS: for each range [first, last, [host, port, …] of the primary, … of its replicas]
 * @param asked host of the node that answered; used if the node does not know its own host
 * @returns the valid ranges; none if the node is not part of a cluster
 */
export function slotRanges(reply: unknown, asked: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((range: unknown): SlotRange[] => {
    if (!Array.isArray(range)) return [];
    const [first, last, primary]: unknown[] = range;
    if (!Array.isArray(primary)) return [];
    const [host, port]: unknown[] = primary;
    if (!isSlot(first) || !isSlot(last) || !isPort(port)) return [];
    const known = typeof host === 'string' && host !== '' && host !== '?';
    return [{ first, last, primary: { host: known ? host : asked, port } }];
  });
}

/** @returns `moved`: permanently; `asking`: for this call only, while the slot is being migrated */
export function redirectionOf(message: string, asked: string) {
  const [, word, slot, host, port] = /^(MOVED|ASK) (\d{1,5}) (\S*):(\d{1,5})$/.exec(message) ?? [];
  if (!isSlot(Number(slot)) || !isPort(Number(port))) return null;
  return {
    kind: word === 'MOVED' ? ('moved' as const) : ('asking' as const),
    slot: Number(slot),
    endpoint: { host: host || asked, port: Number(port) },
  };
}

function isSlot(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < SLOTS;
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535;
}
