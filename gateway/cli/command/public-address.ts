/** Requests to the public address, as clients make them; the certificate is looked at apart, and stops none of them. */
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { bad, type Finding, good } from '#gateway/operate/doctor/findings.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

export interface PublicReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const TIMEOUT_MS = 5000;
const BODY_LENGTH_MAX = 65_536;
const DAY_MS = 86_400_000;
/** Whoever renews does so a month before; whoever forgot has two weeks. */
const DAYS_LEFT_MIN = 14;

/** @throws CommandError exit 2 */
export function publicOrigin(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new CommandError(`--public ${text} is no URL; write https://HOST`, EXIT.usage);
  return url;
}

/** @param path as it is sent @throws what kept it from being answered */
export function ask(
  { protocol, hostname, port }: URL,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<PublicReply> {
  const isTls = protocol === 'https:';
  return new Promise((resolve, reject) => {
    const call = (isTls ? tlsRequest : plainRequest)(
      {
        host: hostname.replace(/^\[|\]$/g, ''),
        port: port === '' ? (isTls ? 443 : 80) : port,
        path,
        headers: { 'user-agent': 'floodgate-doctor', ...headers },
        agent: false,
        timeout: TIMEOUT_MS,
        ...(isTls ? { rejectUnauthorized: false } : {}),
      },
      (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => {
          if (body.length < BODY_LENGTH_MAX) body += chunk.toString();
          else response.destroy();
        });
        response.on('close', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
      },
    );
    call.on('timeout', () => call.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    call.on('error', reject);
    call.end();
  });
}

/** The public listener refuses this path as malformed before it counts anything, and the application never sees it. */
const MALFORMED = '/floodgate%2561prove';

/** @returns false where nobody answers too: whoever asks next says so */
export async function isAdminListener(origin: URL): Promise<boolean> {
  try {
    return /the admin listener|GATEWAY_ADMIN_TOKEN/.test((await ask(origin, MALFORMED)).body);
  } catch {
    return false;
  }
}

/** Chain and expiry. @param now of the wall clock */
export function tlsFinding({ hostname, port }: URL, now: number): Promise<Finding> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port === '' ? 443 : port),
      // An address is no server name (RFC 6066 3).
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
      if (days < 0) end(bad('tls', `the certificate of ${host} has expired on ${valid_to}`, 'renew it now'));
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
            'renew it, and see why nothing did',
          ),
        );
      else end(good('tls', `the certificate of ${host} is trusted and holds for ${days} more days`));
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
