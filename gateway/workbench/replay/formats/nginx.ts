/**
 * `combined` and `common` of NGINX, Apache, Traefik and others, also behind the host as in `vhost_combined`, and NGINX's
 * `main`, which has X-Forwarded-For at the end. Times are those of the end of the reply, in whole seconds.
 */

import { isAddress } from '#shared/client-address.ts';
import type { LoggedRequest } from './logged-request.ts';
import { commonTime } from './times.ts';

const NONE: readonly string[] = [];
const HOLDS_NOTHING = (): boolean => false;
/** The text between two quotes. Apache escapes a quote as \". */
const QUOTED = String.raw`(?:[^"\\]|\\.)*`;
/**
 * The first two fields, time, request, status and the bytes of the body, which Apache writes as - if there are none; after
 * referrer and browser the third quoted field.
 */
const LINE = new RegExp(
  String.raw`^(\S+) (\S+) .*?\[([^\]]{26})\] "(${QUOTED})" (\d{3})(?: (\d+|-))?(?:(?:[^"]*"${QUOTED}"){2}[\d. ]*"(${QUOTED})")?`,
);
const REQUEST = /^([A-Z][A-Z-]*) ([^ ]*)/;
/** An address of IPv4 without a port, which most lines begin with. */
const PLAIN = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3} /;
const WITH_PORT = /\]:\d+$|^[\d.]+:\d+$/;

export function nginxReader(): (line: string) => LoggedRequest | null {
  /** Whether the lines begin with a host, as in Apache's `vhost_combined`. A host can be an address too. */
  let isHostFirst = false;
  return (line) => {
    const fields = LINE.exec(PLAIN.test(line) ? line : withoutPrefix(line));
    if (fields === null) return null;
    const [, first = '', second = ''] = fields;
    const hasAddressFirst = isAddress(first);
    const hasAddressSecond = second !== '-' && isAddress(second);
    if (!hasAddressFirst && hasAddressSecond) isHostFirst = true;
    const isBehindHost = hasAddressSecond && (isHostFirst || WITH_PORT.test(first));
    if (!hasAddressFirst && !isBehindHost) return null;
    return requestIn(fields, isBehindHost ? second : first);
  };
}

function requestIn(fields: RegExpExecArray, client: string): LoggedRequest | null {
  const [, , , time = '', request = '', status, bytes, third = ''] = fields;
  const at = commonTime(time);
  if (Number.isNaN(at)) return null;
  const [, method = null, target = ''] = REQUEST.exec(request) ?? [];
  return {
    at,
    method,
    target: target.includes('\\') ? unescaped(target) : target,
    status: Number(status),
    bytes: bytes === undefined ? null : bytes === '-' ? 0 : Number(bytes),
    digests: null,
    sender: {
      peer: client,
      client,
      // Formats can have other fields at this place. Traefik writes the router.
      forwardedFor: endsInAddress(third) ? third : '',
      headers: NONE,
      holds: HOLDS_NOTHING,
    },
  };
}

function endsInAddress(chain: string): boolean {
  return chain !== '' && chain !== '-' && isAddress(chain.slice(chain.lastIndexOf(',') + 1).trim());
}

/** Decodes escapes: `\x22` is one byte. */
function unescaped(target: string): string {
  return target.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex: string | undefined, char: string) =>
    hex === undefined ? char : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

const ISO_TIME = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`;
/** The host and the program, such as `host nginx[123]: `. */
const TAG = String.raw`\S+ [^\s:[]+(?:\[\d+\])?: `;
const PREFIX = new RegExp(
  [
    // `docker compose logs` and `docker service logs`
    String.raw`\S+ +\| `,
    // `kubectl logs --prefix`
    String.raw`\[pod\/\S+\] `,
    // RFC 5424
    String.raw`<\d+>1 ${ISO_TIME} \S+ \S+ \S+ \S+ (?:-|\[.*?\]) `,
    // RFC 3164, and `journalctl` with -o short, short-full, short-unix and short-monotonic
    String.raw`(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ${TAG}`,
    String.raw`[A-Z][a-z]{2} ${ISO_TIME} [A-Z]\S+ ${TAG}`,
    String.raw`(?:\d+\.\d+|\[ *\d+\.\d+\]) ${TAG}`,
    // Other forms of syslog and journal, CRI, and logs with `--timestamps`
    `${ISO_TIME} ${TAG}`,
    `${ISO_TIME} (?:std(?:out|err) [FP] )?`,
  ]
    .map((form) => `^${form}`)
    .join('|'),
);

/** A line may have a prefix of the container and one of the machine. */
const PREFIXES_MAX = 3;

/** Removes text that a collector puts before the lines of a log: Docker Compose, Kubernetes, syslog and the journal. */
function withoutPrefix(line: string): string {
  let rest = line;
  for (let i = 0; i < PREFIXES_MAX; i++) {
    const [prefix] = PREFIX.exec(rest) ?? [];
    if (prefix === undefined) break;
    rest = rest.slice(prefix.length);
  }
  return rest;
}
