/** The JSON access logs of Traefik, Caddy and Envoy. */
import { isAddress } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { documentIn, type Fields, numberIn, objectIn } from './json-fields.ts';
import type { LoggedRequest } from './logged-request.ts';
import { timeOf } from './times.ts';

/** The fields of a line, not yet checked. */
interface Described {
  /** NaN if there is no time. */
  readonly at: Millis;
  /** The address of the peer. It may be a socket without one. */
  readonly peer: string;
  readonly client: string;
  readonly method: unknown;
  readonly target: string;
  readonly status: unknown;
  readonly bytes: unknown;
  readonly forwardedFor: string;
  readonly headers: readonly (readonly [name: string, value: unknown])[];
  readonly holds: (header: string) => boolean;
}

type ReadLine = (line: string) => LoggedRequest | null;

/** Values that proxies write in place of secrets. */
const REDACTED: readonly unknown[] = ['REDACTED', 'redacted'];
const HEADER = 'request_';
const HEADERS_MAX = 1000;
/** Caddy writes seconds, or whole nanoseconds with `duration_format nano`. No request takes 10,000 s. */
const NANOSECONDS_MIN = 10_000;

/** Traefik's log with `format: json`. It has header fields if `fields.headers` keeps them. */
export function traefikReader(): ReadLine {
  const seen = new Set<string>();
  return reader((fields) => {
    const peer = textIn(fields, 'ClientAddr', 'ClientHost');
    const host = textIn(fields, 'ClientHost');
    const headers = Object.keys(fields)
      .filter((key) => key.startsWith(HEADER))
      .map((key) => [key.slice(HEADER.length).toLowerCase(), fields[key]] as const);
    for (const [name] of headers) if (seen.size < HEADERS_MAX) seen.add(name);
    const forwardedFor = textIn(Object.fromEntries(headers), 'x-forwarded-for');
    return {
      at: timeOf(fields.StartUTC ?? fields.StartLocal ?? fields.time),
      peer,
      // Behind a proxy that Traefik trusts, ClientHost is the address in X-Forwarded-For.
      client: host === '' || host.includes(',') ? peer : host,
      method: fields.RequestMethod,
      target: textIn(fields, 'RequestPath'),
      status: fields.DownstreamStatus,
      bytes: fields.DownstreamContentSize,
      forwardedFor: forwardedFor === '' && !peer.includes(host) ? host : forwardedFor,
      headers,
      holds: (header) => seen.has(header),
    };
  });
}

/** Caddy's log in its default encoding. It has all header fields, and the time of the end of a request. */
export function caddyReader(): ReadLine {
  return reader((fields) => {
    const request = objectIn(fields.request);
    if (request === null) return null;
    const all = objectIn(request.headers);
    const headers = Object.entries(all ?? {}).flatMap(([name, values]) =>
      Array.isArray(values) ? values.map((value: unknown) => [name, value] as const) : [],
    );
    const peer = textIn(request, 'remote_ip', 'remote_addr');
    const duration = numberIn(fields.duration) ?? 0;
    const forwardedFor = headers.flatMap(([name, value]) => (name === 'X-Forwarded-For' ? [value] : []));
    return {
      at: Math.round(timeOf(fields.ts) - duration * (duration >= NANOSECONDS_MIN ? 1e-6 : 1000)),
      peer,
      client: textIn(request, 'client_ip') || peer,
      method: request.method,
      target: textIn(request, 'uri'),
      status: fields.status,
      bytes: fields.size,
      forwardedFor: forwardedFor.join(', '),
      headers,
      holds: () => all !== null,
    };
  });
}

/** Envoy's log as JSON, with the field names of Envoy Gateway and Istio. */
export function envoyReader(named: ReadonlyMap<string, string>): ReadLine {
  return reader((fields) => {
    const client = textIn(fields, 'downstream_remote_address');
    return {
      at: timeOf(fields.start_time),
      peer: textIn(fields, 'downstream_direct_remote_address') || client,
      client,
      method: fields.method,
      target: textIn(fields, 'x-envoy-origin-path', 'x-envoy-original-path', 'path'),
      status: fields.response_code,
      bytes: fields.bytes_sent,
      forwardedFor: textIn(fields, 'x-forwarded-for', 'x_forwarded_for'),
      headers: [...named].map(([name, field]) => [name, textIn(fields, field) || null] as const),
      holds: (header) => named.has(header),
    };
  });
}

function reader(describe: (fields: Fields) => Described | null): ReadLine {
  return (line) => {
    const fields = documentIn(line);
    const described = fields === null ? null : describe(fields);
    return described === null ? null : requestOf(described);
  };
}

function requestOf({ method, target, status, bytes, ...described }: Described): LoggedRequest | null {
  const { at, peer, client, forwardedFor, headers, holds } = described;
  if (Number.isNaN(at) || !isAddress(client) || !isText(method)) return null;
  const isHidden = (value: unknown): boolean => REDACTED.includes(value);
  const concealed = headers.flatMap(([name, value]) => (isHidden(value) ? [name.toLowerCase()] : []));
  return {
    at,
    method,
    // Each code unit of a target stands for one byte.
    target: Buffer.from(target, 'utf8').toString('latin1'),
    status: numberIn(status) ?? 0,
    bytes: numberIn(bytes),
    digests: null,
    sender: {
      peer: isAddress(peer) ? peer : client,
      client,
      forwardedFor,
      headers: headers.flatMap(([name, value]) =>
        typeof value === 'string' && !isHidden(value) ? [name, value] : [],
      ),
      holds: (header) => holds(header) && !concealed.includes(header),
    },
  };
}

/** Returns the first of these fields with a meaningful text; '' if there is none. */
function textIn(fields: Fields, ...names: readonly string[]): string {
  return names.map((name) => fields[name]).find(isText) ?? '';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value !== '-';
}
