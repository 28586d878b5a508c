/** Findings of `doctor --formbricks`, from requests to Formbricks itself and to the address that clients use. */
import type { Finding } from '#gateway/operate/doctor/findings.ts';
import {
  aroundFinding,
  HOPS_MAX,
  hopsFinding,
  KEY_ROUTES,
  keyRoutesFinding,
  LOGIN_PATHS,
  loginFinding,
  type SeenHops,
  type SeenLogin,
  unreachableFinding,
} from '#gateway/operate/doctor/formbricks.ts';
import { NEVER_DENIES } from '#gateway/policy/keys/plain-keys.ts';
import type { Explanation } from '#gateway/workbench/rehearsal/explain.ts';
import type { Millis } from '#shared/clock.ts';
import { type AdminAccess, askAdmin } from './admin-client.ts';
import { ask, isGateway, type PublicReply } from './public-address.ts';

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

export async function probeFormbricks(probe: FormbricksProbe): Promise<Finding[]> {
  const { formbricks, origin, isPublic, proxies, admin, now } = probe;
  const findings: Finding[] = [];
  const chains = new Chains(now);
  try {
    const logins = await loginsOf(formbricks, chains.fresh);
    findings.push(loginFinding(await Promise.all(logins.map((path) => limitsOf(path, admin)))));
    // Without --public the request went to the gateway directly, past the proxies in front of it.
    findings.push(hopsFinding(await hopsOf(formbricks, chains), isPublic ? proxies : null));
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    findings.push(unreachableFinding(formbricks.origin, error.message));
  }
  findings.push(...(await keyRoutes(formbricks, origin)));
  findings.push(await around(formbricks, isPublic ? origin : null));
  return findings;
}

class Unreachable extends Error {}

/** Sends an empty JSON document to Formbricks, which counts it and does nothing else. */
async function post(formbricks: URL, path: string, forwardedFor: string): Promise<PublicReply> {
  try {
    return await ask(
      formbricks,
      path,
      { 'content-type': 'application/json', 'x-forwarded-for': forwardedFor },
      { method: 'POST', body: '{}' },
    );
  } catch (error) {
    throw new Unreachable(problemOf(error));
  }
}

async function loginsOf(formbricks: URL, forwardedFor: string): Promise<string[]> {
  const found: string[] = [];
  for (const path of LOGIN_PATHS) {
    const { status } = await post(formbricks, path, forwardedFor);
    if (status !== 404 && status !== 405) found.push(path);
  }
  return found;
}

/** Returns the policies of the running gateway that count a login. This charges nobody. */
async function limitsOf(path: string, admin: AdminAccess): Promise<SeenLogin> {
  const { policies } = (await askAdmin(admin, 'POST', '/api/explain', {
    request: `POST ${path}`,
    from: '192.0.2.1',
  })) as Explanation;
  const limiting = policies.filter(({ matched, reason }) => matched && !reason.includes(NEVER_DENIES));
  return { path, limitedBy: limiting.map(({ name }) => name) };
}

const RESET = '/api/auth/request-password-reset';
/** Formbricks admits three password resets a minute. */
const RESETS_MAX = 8;

/** Uses up the password resets of one chain of addresses, then changes one address after the other. */
async function hopsOf(formbricks: URL, chains: Chains): Promise<SeenHops> {
  let tried = 0;
  while ((await post(formbricks, RESET, chains.fresh)).status !== 429)
    if (++tried === RESETS_MAX) return { kind: 'unlimited' };
  for (let place = 1; place <= HOPS_MAX; place++)
    if ((await post(formbricks, RESET, chains.changedAt(place))).status !== 429)
      return { kind: 'place', place };
  return { kind: 'none' };
}

/** Chains of addresses from the block for benchmarks (RFC 2544), different in each second. */
class Chains {
  readonly #block: readonly [number, number];

  constructor(now: Millis) {
    const second = Math.floor(now / 1000) % 16_384;
    this.#block = [second >> 6, second & 63];
  }

  get fresh(): string {
    return this.changedAt(0);
  }

  /** @param place position from the right, beginning with 1 */
  changedAt(place: number): string {
    const [third, fourth] = this.#block;
    return Array.from({ length: HOPS_MAX }, (_, i) => {
      const own = HOPS_MAX - i;
      return `198.${own === place ? 19 : 18}.${third}.${fourth * 4 + own - 1}`;
    }).join(', ');
  }
}

async function keyRoutes(formbricks: URL, origin: URL): Promise<Finding[]> {
  try {
    const seen = await Promise.all(
      KEY_ROUTES.map(async (path) => {
        const { status, body } = await ask(origin, path);
        const direct = await ask(formbricks, path).catch(() => null);
        return {
          path,
          directStatus: direct?.status ?? null,
          publicStatus: status,
          isRefused: /"code":"gateway_(?:forbidden|denied)"/.test(body),
        };
      }),
    );
    return [keyRoutesFinding(seen)];
  } catch {
    // Return no finding, because another one already says that the address cannot be reached.
    return [];
  }
}

/**
 * Checks whether the port of Formbricks is open at the host that clients use. @param given null if that host is unknown
 */
async function around(formbricks: URL, given: URL | null): Promise<Finding> {
  if (given === null) return aroundFinding('', null);
  const address = new URL(formbricks);
  address.hostname = given.hostname;
  try {
    await ask(address, '/');
    return aroundFinding(address.origin, !(await isGateway(address)));
  } catch {
    return aroundFinding(address.origin, false);
  }
}

function problemOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
