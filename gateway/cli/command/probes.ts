/** Findings of doctor about the public address: where it leads, its certificate, how the application reads paths. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { PROBE_HEADER } from '#gateway/http/header-names.ts';
import type { Spelling } from '#gateway/operate/admin/spellings.ts';
import {
  clientAddresses,
  expiryMistake,
  type Finding,
  type Found,
  findingsOf,
  wrong,
} from '#gateway/operate/doctor/findings.ts';
import type { Seen } from '#gateway/request/probe.ts';
import { within } from '#shared/within.ts';
import { type AdminAccess, askAdmin } from './admin-client.ts';

/** An address from the block for benchmarks (RFC 2544). */
const CLAIMED_ADDRESS = '198.18.27.53';
const DAY_MS = 86_400_000;
const TIMEOUT_MS = 5000;
const BODY_LENGTH_MAX = 65_536;
const NOWHERE = '/floodgate-doctor-looks-for-nothing';

interface PublicReply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Sends a request as clients do, with any certificate. @param path sent unchanged @throws the error of the connection */
async function ask(
  { protocol, hostname, port }: URL,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<PublicReply> {
  const isTls = protocol === 'https:';
  const call = (isTls ? tlsRequest : plainRequest)({
    host: hostOf(hostname),
    port: port === '' ? (isTls ? 443 : 80) : port,
    path,
    headers: { 'user-agent': 'floodgate-doctor', ...headers },
    agent: false,
    ...(isTls ? { rejectUnauthorized: false } : {}),
  });
  try {
    return await within(TIMEOUT_MS, replyTo(call));
  } finally {
    call.destroy();
  }
}

async function replyTo(call: ClientRequest): Promise<PublicReply> {
  call.end();
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) {
    body += chunk;
    if (body.length > BODY_LENGTH_MAX) break;
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

/** Removes the brackets of an IPv6 address. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/**
 * Checks how the gateway sees requests that come through this address.
 *
 * @param hops number of trusted proxies; 0 if GATEWAY_TRUSTED_PROXIES is not a number
 */
export async function probeTrust(origin: URL, admin: AdminAccess, hops: number): Promise<readonly Finding[]> {
  const { token } = (await askAdmin(admin, 'POST', '/api/doctor/probe', {})) as { token: string };
  const { identity: claimed } = (await askAdmin(admin, 'POST', '/api/inspect', {
    subject: CLAIMED_ADDRESS,
    kind: 'address',
  })) as { identity: string };
  let replies: readonly PublicReply[];
  try {
    const plain = await ask(origin, '/', { [PROBE_HEADER]: token });
    const claiming = { [PROBE_HEADER]: token, 'x-forwarded-for': CLAIMED_ADDRESS };
    replies = [plain, await ask(origin, '/', claiming)];
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    const fix = 'start what listens there, open the port, or give the address that clients use with --public';
    return findingsOf('public-address', wrong(`${origin.origin} cannot be reached from here: ${why}`, fix));
  }
  const [plain, claiming] = replies.map(seenIn);
  if (!plain || !claiming)
    return findingsOf(
      'public-address',
      wrong(
        `${origin.origin} does not lead to this gateway: another server answered ${replies[0]?.status}`,
        'let the proxy in front forward to the gateway (GATEWAY_PORT) with all header fields, and --public name that proxy',
      ),
    );
  const leads = plain.isAsked
    ? `the server at ${origin.origin} is a proxy that asks this gateway about requests`
    : `${origin.origin} leads to this gateway`;
  return [
    ...findingsOf('public-address', leads),
    ...findingsOf('trusted-proxies', clientAddresses({ plain, claiming, claimed, hops })),
  ];
}

function seenIn({ status, body }: PublicReply): Seen | null {
  // 403: a proxy asked the decision listener, which refuses probes.
  if (status !== 200 && status !== 403) return null;
  try {
    const seen = JSON.parse(body) as Partial<Seen> | null;
    return typeof seen?.identity === 'string' && typeof seen.addressFrom === 'string' ? (seen as Seen) : null;
  } catch {
    return null;
  }
}

/** Checks whether the application treats different paths as the same, although policies distinguish them. */
export async function probeSpellings(origin: URL, spellings: readonly Spelling[]): Promise<Finding[]> {
  let replies: readonly (readonly [Spelling, PublicReply, PublicReply])[];
  let nothing: PublicReply;
  try {
    nothing = await ask(origin, NOWHERE);
    replies = await Promise.all(
      spellings.map(async (one) => {
        // An application that also answers a path with any other end knows no formats.
        const as = await ask(origin, one.kind === 'case' ? one.path : `${one.path}-floodgate`);
        return [one, as, await ask(origin, one.other)] as const;
      }),
    );
  } catch {
    // Return no finding, because another one already says that the address cannot be reached.
    return [];
  }
  const answered = replies.filter(([, as, other]) => !isOwn(as) && !isOwn(other));
  if (answered.length === 0) return [];
  const same = answered.filter(([{ kind }, as, other]) =>
    kind === 'case' ? isSame(as, other, nothing) : other.status !== as.status,
  );
  const mistakeOf = (kind: Spelling['kind'], what: (one: Spelling) => string, fix: string) => {
    const [first, ...more] = same.flatMap(([one]) => (one.kind === kind ? [one] : []));
    if (first === undefined) return [];
    const others = more.length === 0 ? '' : `, and ${more.length} more such paths`;
    return [wrong(what(first) + others, fix)];
  };
  const mistakes = [
    ...mistakeOf(
      'case',
      ({ policy, path, other }) =>
        `the application answers ${other} as ${path}, and policy ${policy} counts only the latter`,
      'write ignoreCase: true into the policy file, or make the application distinguish the case of paths',
    ),
    ...mistakeOf(
      'format',
      ({ policy, path, other }) =>
        `the application has ${other} too, and policy ${policy} counts only ${path}`,
      'if the two do the same, give the other one a policy with the same bucket, or let the application refuse it (format: false in Rails)',
    ),
  ];
  const none = `the application has no other spelling of a limited path (${answered.length} tried)`;
  return findingsOf('path-spelling', mistakes.length > 0 ? mistakes : none);
}

/** Whether the gateway wrote the reply itself: it denied the request, or the application did not answer. */
function isOwn({ status, headers }: PublicReply): boolean {
  return status === 429 || status >= 502 || headers['x-gateway-ratelimited'] !== undefined;
}

function isSame(a: PublicReply, b: PublicReply, nothing: PublicReply): boolean {
  if (a.status !== b.status) return false;
  return a.status !== nothing.status || (a.body === b.body && a.body !== nothing.body);
}

/** Checks chain and expiry of the certificate. @param now by the wall clock */
export async function probeTls({ hostname, port }: URL, now: number): Promise<Found> {
  const host = hostOf(hostname);
  const socket = connect({
    host,
    port: Number(port === '' ? 443 : port),
    // An IP address must not be sent as a TLS server name (RFC 6066 3).
    ...(isIP(host) === 0 ? { servername: host } : {}),
    rejectUnauthorized: false,
  });
  try {
    await within(TIMEOUT_MS, once(socket, 'secureConnect'));
    const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - now) / DAY_MS);
    const problem: unknown = socket.authorizationError;
    if (days >= 0 && problem !== null && problem !== undefined)
      return wrong(
        `clients do not trust the certificate of ${host}: ${problemText(problem)}`,
        'serve the whole chain, with a certificate for this name from an authority that clients know; for one of your own, set NODE_EXTRA_CA_CERTS here',
      );
    const what = `the certificate of ${host}`;
    return expiryMistake(what, days) ?? `${what} is trusted and valid for ${days} more days`;
  } catch (error) {
    return wrong(`${host} does not speak TLS: ${(error as Error).message}`, 'look at the proxy in front');
  } finally {
    socket.destroy();
  }
}

function problemText(problem: unknown): string {
  if (problem instanceof Error) return (problem as NodeJS.ErrnoException).code ?? problem.message;
  return String(problem);
}
