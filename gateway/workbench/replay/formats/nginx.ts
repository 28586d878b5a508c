/**
 * `combined` and `common` of NGINX, Apache and others, and NGINX's `main`, which has X-Forwarded-For at the end. Times
 * are those of the end of the reply, in whole seconds.
 */
import type { Millis } from '#shared/clock.ts';
import type { LineReader, LoggedRequest } from './logged-request.ts';

const NONE: readonly string[] = [];
const HOLDS_NOTHING = (): boolean => false;
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';
/** Matches a time such as `22/Nov/2026:06:30:12 +0000`. */
const TIME = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/;
const TIME_LENGTH = 26;
const METHOD = /^[A-Z][A-Z-]*$/;

export function nginxReader(): LineReader {
  // Lines are parsed some time after their times were read, so each step remembers its own second.
  const looked = new ClfTime();
  const time = new ClfTime();
  return {
    format: 'nginx',
    time(text, start, end) {
      const bracket = text.indexOf(' [', start);
      return bracket < 0 || bracket >= end ? Number.NaN : looked.read(text, bracket + 2);
    },
    read: (text, start, end, at = Number.NaN) => read(text, start, end, time, at),
  };
}

/** Consecutive lines usually have the same second. */
class ClfTime {
  #text = '';
  #at: Millis = Number.NaN;

  /** @returns NaN if there is no valid time */
  read(text: string, at: number): Millis {
    if (this.#text === '' || !text.startsWith(this.#text, at)) {
      this.#text = text.slice(at, at + TIME_LENGTH);
      this.#at = parse(this.#text);
    }
    return this.#at;
  }
}

function parse(text: string): Millis {
  const [, day, month = '', year, hour, minute, second, sign, zoneHours, zoneMinutes] = TIME.exec(text) ?? [];
  const monthAt = MONTHS.indexOf(month) / 3;
  if (year === undefined || !Number.isInteger(monthAt)) return Number.NaN;
  const local = Date.UTC(Number(year), monthAt, Number(day), Number(hour), Number(minute), Number(second));
  const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  return sign === '-' ? local + zoneMs : local - zoneMs;
}

function read(text: string, start: number, end: number, time: ClfTime, known: Millis): LoggedRequest | null {
  const addressEnd = text.indexOf(' ', start);
  const bracket = text.indexOf(' [', addressEnd);
  const quote = bracket + 2 + TIME_LENGTH;
  if (addressEnd <= start || bracket < 0 || quote >= end || !text.startsWith('] "', quote)) return null;
  const at = Number.isNaN(known) ? time.read(text, bracket + 2) : known;
  if (Number.isNaN(at)) return null;
  const lineAt = quote + 3;
  const lineEnd = endOfQuoted(text, lineAt, end);
  const status = Number(text.slice(lineEnd + 2, lineEnd + 5));
  if (lineEnd < 0 || text.charCodeAt(lineEnd + 1) !== 32 || !(status >= 0)) return null;
  const methodEnd = text.indexOf(' ', lineAt);
  const targetEnd = text.indexOf(' ', methodEnd + 1);
  const method = methodEnd > 0 && methodEnd < lineEnd ? text.slice(lineAt, methodEnd) : '';
  const isRequest = METHOD.test(method);
  const target = isRequest
    ? text.slice(methodEnd + 1, targetEnd > 0 && targetEnd < lineEnd ? targetEnd : lineEnd)
    : '';
  const address = text.slice(start, addressEnd);
  return {
    at,
    method: isRequest ? method : null,
    target: target.includes('\\') ? unescaped(target) : target,
    status,
    durationMs: null,
    digests: null,
    sender: {
      peer: address,
      client: address,
      forwardedFor: forwardedFor(text, lineEnd, end),
      headers: NONE,
      concealed: NONE,
      holds: HOLDS_NOTHING,
    },
  };
}

/** Reads the third quoted field after the request; the first two are referrer and browser. */
function forwardedFor(text: string, from: number, end: number): string {
  let at = from + 1;
  for (let field = 0; field < 3; field++) {
    const open = text.indexOf('"', at);
    if (open < 0 || open >= end) return '';
    const close = endOfQuoted(text, open + 1, end);
    if (close < 0) return '';
    if (field === 2) return close - open === 2 ? '' : text.slice(open + 1, close);
    at = close + 1;
  }
  return '';
}

/** Returns the end of the quoted text that begins here. Apache escapes a quote as \". @returns -1 if it does not end */
function endOfQuoted(text: string, from: number, end: number): number {
  let at = text.indexOf('"', from);
  while (at > 0 && at < end && text.charCodeAt(at - 1) === 92) at = text.indexOf('"', at + 1);
  return at < end ? at : -1;
}

/** Decodes escapes: `\x22` is one byte. */
function unescaped(target: string): string {
  return target.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex: string | undefined, char: string) =>
    hex === undefined ? char : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
