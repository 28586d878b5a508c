/** The size of header sections: of requests, and of the application's replies. */

export const HEADER_BYTES = 16_384;
/** Larger ones belong into bodies. Each connection may hold one in memory that is not complete. */
export const HEADER_BYTES_MAX = 65_536;

/** Tells whoever reads the refusal what to change. */
export const HEADER_ADVICE = 'GATEWAY_HEADER_BYTES can allow up to 64 KiB';

export function sizeText(bytes: number): string {
  return bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`;
}
