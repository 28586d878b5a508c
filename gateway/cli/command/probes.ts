/** Findings of doctor about the public address: where it leads, its certificate, how the application reads paths. */
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { PROBE_HEADER } from '#gateway/http/header-names.ts';
import type { CredentialSource } from '#gateway/identity/identifier.ts';
import { bad, DAYS_LEFT_MIN, type Finding, good, trustFinding } from '#gateway/operate/doctor/findings.ts';
import { type KeyPlace, otherLetters, type Spelling } from '#gateway/operate/doctor/spellings.ts';
import type { Seen } from '#gateway/request/probe.ts';
import { type AdminAccess, askAdmin } from './admin-client.ts';
import { ask, type PublicReply, TIMEOUT_MS } from './public-address.ts';

/** An address from the block for benchmarks (RFC 2544). */
const CLAIMED_ADDRESS = '198.18.27.53';
const DAY_MS = 86_400_000;
const NOWHERE = '/floodgate-doctor-looks-for-nothing';

interface TrustProbe {
  readonly findings: readonly Finding[];
  /** Number of proxies to the application, including the gateway; null if the address does not lead to this gateway. */
  readonly proxies: number | null;
}

/**
 * Checks how the gateway sees requests that come through this address.
 *
 * @param hops number of trusted proxies; 0 if GATEWAY_TRUSTED_PROXIES is not a number
 */
export async function probeTrust(origin: URL, admin: AdminAccess, hops: number): Promise<TrustProbe> {
  const { token } = (await askAdmin(admin, 'POST', '/api/doctor/probe', {})) as { token: string };
  const { identity: claimed } = (await askAdmin(admin, 'POST', '/api/inspect', {
    subject: CLAIMED_ADDRESS,
    kind: 'address',
  })) as { identity: string };
  let plain: PublicReply;
  let claiming: PublicReply;
  try {
    plain = await ask(origin, '/', { [PROBE_HEADER]: token });
    claiming = await ask(origin, '/', { [PROBE_HEADER]: token, 'x-forwarded-for': CLAIMED_ADDRESS });
  } catch (error) {
    const finding = bad(
      'public-address',
      `${origin.origin} cannot be reached from here: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`,
      'start what listens there, open the port, or give the address that clients use with --public',
    );
    return { findings: [finding], proxies: null };
  }
  const [seenPlain, seenClaiming] = [seenIn(plain), seenIn(claiming)];
  if (seenPlain === null || seenClaiming === null) {
    const finding = bad(
      'public-address',
      `${origin.origin} does not lead to this gateway: another server answered ${plain.status}`,
      'let the proxy in front forward to the gateway (GATEWAY_PORT) with all header fields, and --public name that proxy',
    );
    return { findings: [finding], proxies: null };
  }
  const { isAsked, forwardedCount } = seenPlain;
  const leads = isAsked
    ? `the server at ${origin.origin} is a proxy that asks this gateway about requests`
    : `${origin.origin} leads to this gateway`;
  const findings = [
    good('public-address', leads),
    trustFinding({ plain: seenPlain, claiming: seenClaiming, claimed, hops }),
  ];
  return { findings, proxies: isAsked ? forwardedCount : forwardedCount + 1 };
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
  const of = (kind: Spelling['kind']) => answered.filter(([one]) => one.kind === kind);
  const cases = of('case').filter(([, as, other]) => isSame(as, other, nothing));
  const formats = of('format').filter(([, as, other]) => other.status !== as.status);
  const findings: Finding[] = [];
  if (cases[0] !== undefined) {
    const [{ policy, path, other }] = cases[0];
    findings.push(
      bad(
        'path-spelling',
        `the application answers ${other} as ${path}, and policy ${policy} counts only the latter${more(cases)}`,
        'write ignoreCase: true into the policy file, or make the application distinguish the case of paths',
      ),
    );
  }
  if (formats[0] !== undefined) {
    const [{ policy, path, other }] = formats[0];
    findings.push(
      bad(
        'path-spelling',
        `the application has ${other} too, and policy ${policy} counts only ${path}${more(formats)}`,
        'if the two do the same, give the other one a policy with the same bucket, or let the application refuse it (format: false in Rails)',
      ),
    );
  }
  if (findings.length > 0) return findings;
  const tried = answered.length;
  return [good('path-spelling', `the application has no other spelling of a limited path (${tried} tried)`)];
}

function more({ length }: readonly unknown[]): string {
  return length === 1 ? '' : `, and ${length - 1} more such paths`;
}

/** Checks whether the application takes a key in other case for the same key, although policies distinguish them. */
export async function probeKey(origin: URL, key: string, places: readonly KeyPlace[]): Promise<Finding[]> {
  const other = otherLetters(key);
  let tried = 0;
  for (const { identifier, path, sources } of places) {
    const source = sources.find((one) => one.kind !== 'bearer' || key.startsWith(one.prefix));
    if (source === undefined || other === key) continue;
    const send = (sent: string): Promise<PublicReply> =>
      ask(origin, ...requestWith(source, path, encodeURIComponent(sent), sent));
    const [accepted, refused, spelled] = [await send(key), await send(`${key}x`), await send(other)];
    if ([accepted, refused, spelled].some(isOwn) || accepted.status === refused.status) continue;
    tried++;
    if (spelled.status === accepted.status)
      return [
        bad(
          'key-spelling',
          `the application takes the key in other case too, and ${identifier} counts each spelling as another key`,
          `write ignoreCase: true into the identifier ${identifier}`,
        ),
      ];
  }
  return tried > 0
    ? [good('key-spelling', 'the application distinguishes upper and lower case in keys')]
    : [
        bad(
          'key-spelling',
          'the key could not be tried: on no route did the application accept it and refuse an invented one',
          'give a key with letters that works for a GET route of a policy that counts keys by case',
        ),
      ];
}

function requestWith(
  source: CredentialSource,
  path: string,
  encoded: string,
  key: string,
): [path: string, headers: Record<string, string>] {
  switch (source.kind) {
    case 'header':
      return [path, { [source.header]: key }];
    case 'bearer':
      return [path, { authorization: `Bearer ${key}` }];
    case 'cookie':
      return [path, { cookie: `${source.cookie}=${encoded}` }];
    case 'query':
      return [`${path}?${source.parameter}=${encoded}`, {}];
    default:
      return source satisfies never;
  }
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
export function tlsFinding({ hostname, port }: URL, now: number): Promise<Finding> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port === '' ? 443 : port),
      // An IP address must not be sent as a TLS server name (RFC 6066 3).
      ...(isIP(host) === 0 ? { servername: host } : {}),
      rejectUnauthorized: false,
      timeout: TIMEOUT_MS,
    });
    const end = (finding: Finding): void => {
      socket.destroy();
      resolve(finding);
    };
    socket.once('secureConnect', () => {
      const { valid_to } = socket.getPeerCertificate();
      const days = Math.floor((Date.parse(valid_to) - now) / DAY_MS);
      const problem: unknown = socket.authorizationError;
      if (days < 0) end(bad('tls', `the certificate of ${host} expired on ${valid_to}`, 'renew it now'));
      else if (problem !== null && problem !== undefined)
        end(
          bad(
            'tls',
            `clients do not trust the certificate of ${host}: ${problemText(problem)}`,
            'serve the whole chain, with a certificate for this name from an authority that clients know; for one of your own, set NODE_EXTRA_CA_CERTS here',
          ),
        );
      else if (days < DAYS_LEFT_MIN)
        end(
          bad(
            'tls',
            `the certificate of ${host} expires in ${days} days`,
            'renew it, and find out why it was not renewed before',
          ),
        );
      else end(good('tls', `the certificate of ${host} is trusted and valid for ${days} more days`));
    });
    socket.once('timeout', () =>
      end(bad('tls', `${host} does not speak TLS in time`, 'look at the proxy in front')),
    );
    socket.once('error', (error) =>
      end(bad('tls', `${host} does not speak TLS: ${error.message}`, 'look at the proxy in front')),
    );
  });
}

function problemText(problem: unknown): string {
  if (problem instanceof Error) return (problem as NodeJS.ErrnoException).code ?? problem.message;
  return String(problem);
}
