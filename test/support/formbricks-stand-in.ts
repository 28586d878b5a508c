/**
 * Stands in for Formbricks 5.4, as far as it matters at the edge: it has the routes, finds the client address as its
 * documentation says, and limits logins itself. Its counters never end.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';

export interface FormbricksOptions {
  /** The value of TRUSTED_PROXY_HOP_COUNT. */
  readonly hopCount?: number;
  /** Set by RATE_LIMITING_DISABLED. */
  readonly isUnlimited?: boolean;
  /** The login of releases up to 5.1. */
  readonly isOld?: boolean;
  /** Address on loopback where it listens. */
  readonly host?: string;
}

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  /** Client address, as the application has determined it. */
  readonly client: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
}

export interface Formbricks {
  readonly server: Server;
  readonly origin: string;
  readonly port: number;
  readonly seen: readonly SeenRequest[];
}

/** The address of all clients if the chain is too short. */
const NOBODY_IN_PARTICULAR = 'unknown';
const VALID_KEY = 'fbk_valid';

/** The application's own limits, by path. */
const OWN_LIMITS: Readonly<Record<string, number>> = {
  '/api/auth/sign-in/email': 5,
  '/api/auth/sign-up/email': 3,
  '/api/auth/request-password-reset': 3,
};

export async function startFormbricks(owner: Owner, options: FormbricksOptions = {}): Promise<Formbricks> {
  const { hopCount = 1, isUnlimited = false, isOld = false, host = '127.0.0.1' } = options;
  const seen: SeenRequest[] = [];
  const used = new Map<string, number>();
  const server = createServer((req, res) => {
    const { method = '', url = '', rawHeaders } = req;
    const client = clientOf(req, hopCount);
    seen.push({ method, url, client, rawHeaders });
    const path = pathOf(url);
    const counter = `${path} ${client}`;
    const limit = isUnlimited || isOld ? undefined : OWN_LIMITS[path];
    const count = (used.get(counter) ?? 0) + 1;
    req.resume();
    if (method === 'POST' && limit !== undefined && count > limit) {
      res.writeHead(429, { 'x-retry-after': '60' }).end('{"message":"Too many requests."}');
      return;
    }
    if (method === 'POST' && limit !== undefined) used.set(counter, count);
    const { status, body } = answerTo(method, path, req.headers['x-api-key'], isOld);
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  // Nothing listens on this port of another address.
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  owner.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { server, port, origin: `http://${host}:${port}`, seen };
}

/** Returns the path behind the redirects of Next.js, which removes repeated slashes and one at the end. */
export function pathOf(url: string): string {
  const [path = ''] = url.split('?');
  return decodeURIComponent(path)
    .replace(/\/+/g, '/')
    .replace(/(?<=.)\/$/, '');
}

/** Returns the entry of X-Forwarded-For at that position from the right. */
function clientOf({ headers, socket }: IncomingMessage, hopCount: number): string {
  if (hopCount === 0) return socket.remoteAddress ?? '';
  const chain = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  return chain.at(-hopCount) ?? NOBODY_IN_PARTICULAR;
}

function answerTo(
  method: string,
  path: string,
  key: string | string[] | undefined,
  isOld: boolean,
): { readonly status: number; readonly body: object } {
  if (/^\/api\/(?:envoy|traefik)-auth(?:\/|$)/.test(path) && !isOld)
    return key === VALID_KEY
      ? { status: 200, body: {} }
      : { status: 401, body: { code: 'not_authenticated' } };
  const isLogin = isOld ? path === '/api/auth/callback/credentials' : path === '/api/auth/sign-in/email';
  if (isLogin && method === 'POST')
    return { status: 401, body: { code: 'INVALID_EMAIL_OR_PASSWORD', message: 'Invalid email or password' } };
  if (path === '/api/auth/request-password-reset' && method === 'POST' && !isOld)
    return { status: 400, body: { code: 'VALIDATION_ERROR', message: 'email is required' } };
  if (path === '/api/v2/health') return { status: 200, body: { status: 'ok' } };
  if (/^\/api\/v[12]\/client\/[^/]+\/(?:responses|displays|user|environment)/.test(path))
    return { status: 200, body: { data: {} } };
  if (path === '/') return { status: 307, body: {} };
  return { status: 404, body: { code: 'not_found', message: 'not found' } };
}
