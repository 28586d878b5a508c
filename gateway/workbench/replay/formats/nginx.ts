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
/** The text between two quotes. Apache escapes a quote as \". */
const QUOTED = String.raw`(?:[^"\\]|\\.)*`;
/** Address, time, request and status; after referrer and browser the third quoted field. */
const LINE = new RegExp(
  String.raw`^(\S+) .*?\[([^\]]{26})\] "(${QUOTED})" (\d{3})(?:(?:[^"]*"${QUOTED}"){2}[^"]*"(${QUOTED})")?`,
);
const REQUEST = /^([A-Z][A-Z-]*) ([^ ]*)/;

export function nginxReader(): LineReader {
  return { format: 'nginx', read };
}

function read(line: string): LoggedRequest | null {
  const [, address, time = '', request = '', status, forwardedFor = ''] = LINE.exec(line) ?? [];
  const at = parse(time);
  if (address === undefined || Number.isNaN(at)) return null;
  const [, method = null, target = ''] = REQUEST.exec(request) ?? [];
  return {
    at,
    method,
    target: target.includes('\\') ? unescaped(target) : target,
    status: Number(status),
    durationMs: null,
    digests: null,
    sender: {
      peer: address,
      client: address,
      forwardedFor: forwardedFor === '-' ? '' : forwardedFor,
      headers: NONE,
      concealed: NONE,
      holds: HOLDS_NOTHING,
    },
  };
}

/** @returns NaN if there is no valid time */
function parse(text: string): Millis {
  const [, day, month = '', year, hour, minute, second, sign, zoneHours, zoneMinutes] = TIME.exec(text) ?? [];
  const monthAt = MONTHS.indexOf(month) / 3;
  if (year === undefined || !Number.isInteger(monthAt)) return Number.NaN;
  const local = Date.UTC(Number(year), monthAt, Number(day), Number(hour), Number(minute), Number(second));
  const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  return sign === '-' ? local + zoneMs : local - zoneMs;
}

/** Decodes escapes: `\x22` is one byte. */
function unescaped(target: string): string {
  return target.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex: string | undefined, char: string) =>
    hex === undefined ? char : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
