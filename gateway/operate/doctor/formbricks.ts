/** Finds mistakes in a set-up in front of Formbricks, from the results of probes. Pure. */
import { bad, type Finding, good } from './findings.ts';

/** Login routes of all releases, the current one first. */
export const LOGIN_PATHS = ['/api/auth/sign-in/email', '/api/auth/callback/credentials'] as const;

/** Routes that tell everybody whether an API key is valid. */
export const KEY_ROUTES = ['/api/envoy-auth', '/api/traefik-auth'] as const;

/** Number of positions of X-Forwarded-For that are tried. */
export const HOPS_MAX = 4;

export interface SeenLogin {
  readonly path: string;
  /** Policies of the gateway that count the request and may deny it. */
  readonly limitedBy: readonly string[];
}

interface SeenKeyRoute {
  readonly path: string;
  /** Status of the reply without the gateway; null if the application could not be reached. */
  readonly directStatus: number | null;
  readonly publicStatus: number;
  /** Whether the gateway answered, not the application. */
  readonly isRefused: boolean;
}

/** How Formbricks reads the client address from X-Forwarded-For. */
export type SeenHops =
  /** Formbricks uses the entry at this position from the right. */
  | { readonly kind: 'place'; readonly place: number }
  /** Formbricks counts all clients as one. */
  | { readonly kind: 'none' }
  /** Formbricks limits nothing, so the address that it uses cannot be observed. */
  | { readonly kind: 'unlimited' };

/** @param logins routes that exist in the application */
export function loginFinding(logins: readonly SeenLogin[]): Finding {
  if (logins.length === 0)
    return bad(
      'login-limit',
      `the application has no login at ${LOGIN_PATHS.join(' or ')}`,
      'give the address of Formbricks with --formbricks',
    );
  const open = logins.filter(({ limitedBy }) => limitedBy.length === 0).map(({ path }) => path);
  if (open.length > 0)
    return bad(
      'login-limit',
      `no policy limits the login at POST ${open.join(' and POST ')}`,
      'use the policy file examples/formbricks.yaml, or copy its rows for the login',
    );
  const limits = logins.map(({ path, limitedBy }) => `POST ${path} by ${limitedBy.join(', ')}`);
  return good('login-limit', `the login is limited: ${limits.join('; ')}`);
}

export function keyRoutesFinding(routes: readonly SeenKeyRoute[]): Finding {
  const open = routes.filter(isOpen).map(({ path }) => path);
  if (open.length === 0)
    return good('key-routes', `clients do not reach ${routes.map(({ path }) => path).join(' and ')}`);
  return bad(
    'key-routes',
    `clients reach ${open.join(' and ')}, where anybody can try whether an API key is valid`,
    `close them in the policy file: deny: [${open.map((path) => `{ route: "* ${path}/*" }`).join(', ')}]`,
  );
}

/** Whether clients can reach the route. A proxy in front may also deny it, and older releases do not have it. */
function isOpen({ directStatus, publicStatus, isRefused }: SeenKeyRoute): boolean {
  if (isRefused || publicStatus === 404) return false;
  return directStatus === null || directStatus === publicStatus;
}

/** @param proxies number of proxies between clients and Formbricks; null if unknown */
export function hopsFinding(seen: SeenHops, proxies: number | null): Finding {
  const fix =
    proxies === null
      ? 'set TRUSTED_PROXY_HOP_COUNT of Formbricks to the number of proxies on the way to it, the gateway included'
      : `set TRUSTED_PROXY_HOP_COUNT=${proxies} for Formbricks`;
  switch (seen.kind) {
    case 'unlimited':
      return bad(
        'hop-count',
        'Formbricks limits no password resets, so the client address that it uses cannot be observed',
        `${fix}; remove RATE_LIMITING_DISABLED, and see whether Formbricks reaches its Redis`,
      );
    case 'none':
      return bad(
        'hop-count',
        'Formbricks counts all clients as one, so one of them can use up all limits',
        fix,
      );
    case 'place':
      break;
    default:
      return seen satisfies never;
  }
  const { place } = seen;
  if (proxies === null)
    return good(
      'hop-count',
      `Formbricks expects ${counted(place)} on the way; with --public, and a gateway in front, doctor counts them`,
    );
  if (place === proxies)
    return good('hop-count', `Formbricks expects ${counted(place)} on the way, and there are ${proxies}`);
  const whom = place > proxies ? 'it counts all clients as one' : 'it counts a proxy as the client';
  return bad(
    'hop-count',
    `Formbricks expects ${counted(place)} on the way, and there are ${proxies}: ${whom}`,
    fix,
  );
}

function counted(proxies: number): string {
  return `${proxies} ${proxies === 1 ? 'proxy' : 'proxies'}`;
}

/** @param open whether clients can reach the port of the application; null if unknown */
export function aroundFinding(address: string, open: boolean | null): Finding {
  if (open === null) return good('around-gateway', 'not checked; give --public to check that host');
  if (!open) return good('around-gateway', `${address} does not answer clients`);
  return bad(
    'around-gateway',
    `clients reach ${address} without the gateway, so nothing is limited there`,
    'remove ports: of Formbricks from the Compose file, or close the port in the firewall',
  );
}

export function unreachableFinding(origin: string, problem: string): Finding {
  return bad(
    'formbricks',
    `${origin} cannot be reached from here: ${problem}`,
    'run doctor where the gateway runs, such as docker compose exec gateway npx floodgate doctor',
  );
}
