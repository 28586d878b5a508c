/** Decides which bytes of a file a request gets (RFC 9110 14). Pure. */
import type { ByteRange } from '#api/storage/storage.ts';

/**
 * Selects the bytes of a reply. null is the whole file: without a range, and for one that is unreadable or has several
 * parts, as the RFC allows.
 */
export function select(size: number, range: string | undefined): ByteRange | 'unsatisfiable' | null {
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range?.trim() ?? '') ?? [];
  if (from === '' && to === '') return null;
  const end = size - 1;
  // Without a beginning, these are the last `to` bytes.
  const first = from === '' ? Math.max(size - Number(to), 0) : Number(from);
  const last = from === '' || to === '' ? end : Math.min(Number(to), end);
  if (from !== '' && to !== '' && Number(to) < first) return null;
  return first > end ? 'unsatisfiable' : { first, last };
}
