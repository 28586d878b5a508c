/** Decides which bytes of a file a request gets (RFC 9110 13 and 14). Pure. */
import { matchesEtag } from '#api/http/conditional.ts';
import type { ByteRange, StoredFile } from '#api/storage/storage.ts';
import type { Millis } from '#shared/clock.ts';

interface Conditions {
  readonly range?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSince?: string | undefined;
}

/**
 * Selects the bytes of a reply. null is the whole file: without a range, and for one that is unreadable or has several
 * parts, as the RFC allows.
 */
export function select(
  file: StoredFile,
  conditions: Conditions,
): ByteRange | 'notModified' | 'unsatisfiable' | null {
  if (isNotModified(file, conditions)) return 'notModified';
  const { range, ifRange } = conditions;
  if (range === undefined) return null;
  if (ifRange !== undefined && ifRange !== file.etag && ifRange !== httpDate(file.modifiedAt)) return null;

  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim()) ?? [];
  if (from === '' && to === '') return null;
  const end = file.size - 1;
  // Without a beginning, these are the last `to` bytes.
  const first = from === '' ? Math.max(file.size - Number(to), 0) : Number(from);
  const last = from === '' || to === '' ? end : Math.min(Number(to), end);
  if (from !== '' && to !== '' && Number(to) < first) return null;
  return first > end ? 'unsatisfiable' : { first, last };
}

/** Whether the client has the file. If there is a tag, the date is ignored (RFC 9110 13.2.2). */
function isNotModified(file: StoredFile, { ifNoneMatch, ifModifiedSince }: Conditions): boolean {
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, file.etag);
  if (ifModifiedSince === undefined) return false;
  const since = Date.parse(ifModifiedSince);
  // A date has whole seconds.
  return Number.isFinite(since) && Math.floor(file.modifiedAt / 1000) * 1000 <= since;
}

export function httpDate(time: Millis): string {
  return new Date(time).toUTCString();
}
