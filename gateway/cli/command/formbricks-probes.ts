/** Findings of `doctor --formbricks`, from requests to Formbricks itself and to the address that clients use. */

import { bad, type Finding, good } from '#gateway/operate/doctor/findings.ts';
import { NEVER_DENIES } from '#gateway/policy/keys/policy-keys.ts';
import type { Explanation } from '#gateway/workbench/rehearsal/explain.ts';
import type { Millis } from '#shared/clock.ts';
import { type AdminAccess, askAdmin } from './admin-client.ts';
import { ask, isGateway } from './public-address.ts';

interface FormbricksProbe {
  /** Address of Formbricks, past all proxies. */
  readonly formbricks: URL;
  /** Address that clients use. */
  readonly origin: URL;
  /** Whether `origin` comes from an option. Then clients really use it. */
  readonly isPublic: boolean;
  /** Number of proxies from `origin` to Formbricks, including the gateway; null if unknown. */
  readonly proxies: number | null;
  readonly admin: AdminAccess;
  readonly now: Millis;
}

/** Login routes of all releases, the current one first. */
const LOGIN_PATHS = ['/api/auth/sign-in/email', '/api/auth/callback/credentials'];
/** Routes that tell everybody whether an API key is valid. */
const KEY_ROUTES = ['/api/envoy-auth', '/api/traefik-auth'];
const RESET = '/api/auth/request-password-reset';
/** Formbricks admits three password resets a minute. */
const RESETS_MAX = 8;
/** Number of positions of X-Forwarded-For that are tried. */
const HOPS_MAX = 4;

class Unreachable extends Error {}

export async function probeFormbricks(probe: FormbricksProbe): Promise<Finding[]> {
  const { formbricks, origin, isPublic, proxies, admin, now } = probe;
  const findings: Finding[] = [];
  try {
    findings.push(await loginFinding(formbricks, admin, chainAt(now)));
    // Without --public the request went to the gateway directly, past the proxies in front of it.
    findings.push(await hopsFinding(formbricks, isPublic ? proxies : null, now));
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    findings.push(
      bad(
        'formbricks',
        `${formbricks.origin} cannot be reached from here: ${error.message}`,
        'run doctor where the gateway runs, such as docker compose exec gateway npx floodgate doctor',
      ),
    );
  }
  findings.push(...(await keyRoutesFinding(formbricks, origin)));
  findings.push(await aroundFinding(formbricks, isPublic ? origin : null));
  return findings;
}

/** Sends an empty JSON document to Formbricks, which counts it and does nothing else. @returns the status */
async function post(formbricks: URL, path: string, forwardedFor: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwardedFor };
  try {
    return (await ask(formbricks, path, headers, { method: 'POST', body: '{}' })).status;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Unreachable(code ?? message);
  }
}

async function loginFinding(formbricks: URL, admin: AdminAccess, chain: string): Promise<Finding> {
  const limits: string[] = [];
  const open: string[] = [];
  for (const path of LOGIN_PATHS) {
    const status = await post(formbricks, path, chain);
    if (status === 404 || status === 405) continue;
    const names = await policiesThatLimit(path, admin);
    if (names.length === 0) open.push(`POST ${path}`);
    else limits.push(`POST ${path} by ${names.join(', ')}`);
  }
  if (open.length > 0)
    return bad(
      'login-limit',
      `no policy limits the login at ${open.join(' and ')}`,
      'use the policy file examples/formbricks.yaml, or copy its rows for the login',
    );
  if (limits.length > 0) return good('login-limit', `the login is limited: ${limits.join('; ')}`);
  return bad(
    'login-limit',
    `the application has no login at ${LOGIN_PATHS.join(' or ')}`,
    'give the address of Formbricks with --formbricks',
  );
}

/** Returns the policies of the running gateway that count a login, and may deny it. This charges nobody. */
async function policiesThatLimit(path: string, admin: AdminAccess): Promise<readonly string[]> {
  const { policies } = (await askAdmin(admin, 'POST', '/api/explain', {
    request: `POST ${path}`,
    from: '192.0.2.1',
  })) as Explanation;
  const limiting = policies.filter(({ matched, reason }) => matched && !reason.includes(NEVER_DENIES));
  return limiting.map(({ name }) => name);
}

/** @param proxies number of proxies between clients and Formbricks; null if unknown */
async function hopsFinding(formbricks: URL, proxies: number | null, now: Millis): Promise<Finding> {
  const place = await usedPlace(formbricks, now);
  const fix =
    proxies === null
      ? 'set TRUSTED_PROXY_HOP_COUNT of Formbricks to the number of proxies on the way to it, the gateway included'
      : `set TRUSTED_PROXY_HOP_COUNT=${proxies} for Formbricks`;
  if (place === 'unlimited')
    return bad(
      'hop-count',
      'Formbricks limits no password resets, so the client address that it uses cannot be observed',
      `${fix}; remove RATE_LIMITING_DISABLED, and see whether Formbricks reaches its Redis`,
    );
  if (place === null)
    return bad(
      'hop-count',
      'Formbricks counts all clients as one, so one of them can use up all limits',
      fix,
    );
  const expected = `Formbricks expects ${place} ${place === 1 ? 'proxy' : 'proxies'} on the way`;
  if (proxies === null)
    return good('hop-count', `${expected}; with --public, and a gateway in front, doctor counts them`);
  if (place === proxies) return good('hop-count', `${expected}, and there are ${proxies}`);
  const whom = place > proxies ? 'it counts all clients as one' : 'it counts a proxy as the client';
  return bad('hop-count', `${expected}, and there are ${proxies}: ${whom}`, fix);
}

/**
 * Uses up the password resets of one chain of addresses, then changes one address after the other.
 *
 * @returns the position, from the right, of the entry of X-Forwarded-For that Formbricks uses; null if it uses none;
 * unlimited if it limits nothing, so the address that it uses cannot be observed
 */
async function usedPlace(formbricks: URL, now: Millis): Promise<number | null | 'unlimited'> {
  let tried = 0;
  while ((await post(formbricks, RESET, chainAt(now))) !== 429)
    if (++tried === RESETS_MAX) return 'unlimited';
  for (let place = 1; place <= HOPS_MAX; place++)
    if ((await post(formbricks, RESET, chainAt(now, place))) !== 429) return place;
  return null;
}

/**
 * Returns a chain of addresses from the block for benchmarks (RFC 2544), different in each second.
 *
 * @param changed position, from the right, of the address that differs from the others of this second; 0 for none
 */
function chainAt(now: Millis, changed = 0): string {
  const second = Math.floor(now / 1000) % 16_384;
  return Array.from({ length: HOPS_MAX }, (_, i) => {
    const place = HOPS_MAX - i;
    return `198.${place === changed ? 19 : 18}.${second >> 6}.${(second & 63) * 4 + place - 1}`;
  }).join(', ');
}

async function keyRoutesFinding(formbricks: URL, origin: URL): Promise<Finding[]> {
  try {
    const open: string[] = [];
    for (const path of KEY_ROUTES) if (await isOpen(path, formbricks, origin)) open.push(path);
    if (open.length === 0) return [good('key-routes', `clients do not reach ${KEY_ROUTES.join(' and ')}`)];
    const rows = open.map((path) => `{ route: "* ${path}/*" }`).join(', ');
    return [
      bad(
        'key-routes',
        `clients reach ${open.join(' and ')}, where anybody can try whether an API key is valid`,
        `close them in the policy file: deny: [${rows}]`,
      ),
    ];
  } catch {
    // Return no finding, because another one already says that the address cannot be reached.
    return [];
  }
}

/** Whether clients can reach the route. A proxy in front may also deny it, and older releases do not have it. */
async function isOpen(path: string, formbricks: URL, origin: URL): Promise<boolean> {
  const { status, body } = await ask(origin, path);
  const isRefused = /"code":"gateway_(?:forbidden|denied)"/.test(body);
  if (isRefused || status === 404) return false;
  const direct = await ask(formbricks, path).catch(() => null);
  return direct === null || direct.status === status;
}

/**
 * Checks whether the port of Formbricks is open at the host that clients use. @param given null if that host is unknown
 */
async function aroundFinding(formbricks: URL, given: URL | null): Promise<Finding> {
  if (given === null) return good('around-gateway', 'not checked; give --public to check that host');
  const address = new URL(formbricks);
  address.hostname = given.hostname;
  const isClosed = await ask(address, '/')
    .then(() => isGateway(address))
    .catch(() => true);
  if (isClosed) return good('around-gateway', `${address.origin} does not answer clients`);
  return bad(
    'around-gateway',
    `clients reach ${address.origin} without the gateway, so nothing is limited there`,
    'remove ports: of Formbricks from the Compose file, or close the port in the firewall',
  );
}
