/** Decides which bytes of a file a request gets (RFC 9110 13 and 14). Pure. */
import { matchesEtag } from '#api/http/conditional.ts';
import type { ByteRange } from '#api/storage/storage.ts';
import type { Millis } from '#shared/clock.ts';

interface FileVersion {
  readonly size: number;
  readonly etag: string;
  readonly modifiedAt: Millis;
}

interface Conditions {
  readonly range?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSince?: string | undefined;
}

type Selection =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly range: ByteRange }
  | { readonly kind: 'notModified' }
  | { readonly kind: 'unsatisfiable' };

const whole: Selection = { kind: 'whole' };

/** Selects the bytes of a reply. An unreadable range, or several parts, get the whole file, as the RFC allows. */
export function select(file: FileVersion, conditions: Conditions): Selection {
  if (isNotModified(file, conditions)) return { kind: 'notModified' };
  const { range, ifRange } = conditions;
  if (range === undefined) return whole;
  if (ifRange !== undefined && ifRange !== file.etag && ifRange !== httpDate(file.modifiedAt)) return whole;

  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim()) ?? [];
  if (from === '' && to === '') return whole;
  const end = file.size - 1;
  if (from === '') {
    // The last `length` bytes.
    const length = Math.min(Number(to), file.size);
    return length === 0 ? { kind: 'unsatisfiable' } : part(file.size - length, end);
  }
  const first = Number(from);
  const last = to === '' ? end : Number(to);
  if (last < first && to !== '') return whole;
  return first > end ? { kind: 'unsatisfiable' } : part(first, Math.min(last, end));
}

function part(first: number, last: number): Selection {
  return { kind: 'part', range: { first, last } };
}

/** Whether the client has the file. If there is a tag, the date is ignored (RFC 9110 13.2.2). */
function isNotModified(file: FileVersion, { ifNoneMatch, ifModifiedSince }: Conditions): boolean {
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, file.etag);
  if (ifModifiedSince === undefined) return false;
  const since = Date.parse(ifModifiedSince);
  // A date has whole seconds.
  return Number.isFinite(since) && Math.floor(file.modifiedAt / 1000) * 1000 <= since;
}

export function httpDate(time: Millis): string {
  return new Date(time).toUTCString();
}
