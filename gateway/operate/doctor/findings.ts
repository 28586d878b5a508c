/**
 * Finds mistakes in a set-up and says how to correct them. Pure: it reads the gateway's report and the results of
 * probes.
 */

import type { GatewayReport } from '#gateway/operate/admin/doctor-report.ts';
import type { Seen } from '#gateway/request/probe.ts';
import { isBefore, nodeHole } from './node-holes.ts';

export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly message: string;
  /** How to correct the mistake; empty if there is nothing to do. */
  readonly fix: string;
}

type Mistake = Pick<Finding, 'message' | 'fix'>;

/** A check says a sentence if all is right, or its mistakes; null if it does not concern this set-up. */
export type Found = string | Mistake | readonly Mistake[] | null;

/** Version and clock of the command. The time is that in the middle of the request for the report. */
interface Here {
  readonly version: string;
  readonly now: number;
}

const CLOCK_MS_MAX = 2000;
/**
 * Warn this long before a certificate expires. By then it is overdue, because certificates are usually renewed a month
 * before.
 */
const DAYS_LEFT_MIN = 14;
const NODE_MIN = [24, 7] as const;
const REDIS_MIN = [6, 2] as const;

const CHECKS: Readonly<Record<string, (report: GatewayReport, here: Here) => Found>> = {
  versions,
  'policy-file': policyFile,
  upstream,
  store,
  clock,
  'open-files': openFiles,
  certificate,
  hosts,
  'other-origins': foreignPages,
  'trusted-proxies': trustedNetworks,
};

export function reportFindings(report: GatewayReport, here: Here): Finding[] {
  return Object.entries(CHECKS).flatMap(([check, look]) => findingsOf(check, look(report, here)));
}

export function findingsOf(check: string, found: Found): Finding[] {
  if (found === null) return [];
  if (typeof found === 'string') return [{ check, ok: true, message: found, fix: '' }];
  return [found].flat().map((mistake) => ({ check, ok: false, ...mistake }));
}

export function wrong(message: string, fix: string): Mistake {
  return { message, fix };
}

function versions({ version, nodeVersion }: GatewayReport, here: Here): Found {
  if (isBefore(nodeVersion, NODE_MIN))
    return wrong(`the gateway runs on Node.js ${nodeVersion}`, `use ${NODE_MIN.join('.')} or later`);
  const hole = nodeHole(nodeVersion);
  if (hole !== null) return hole;
  if (version !== here.version)
    return wrong(
      `the gateway is ${version}, this command is ${here.version}`,
      'run the command of the version that the gateway has: the one in its image, say',
    );
  return `Floodgate ${version} on Node.js ${nodeVersion}`;
}

function policyFile({ policies: { file, version, state, reason } }: GatewayReport): Found {
  switch (state) {
    case 'same':
      return `${file} is in use, version ${version}`;
    case 'changed':
      return wrong(
        `${file} has changed and is not in use yet`,
        'wait a second and ask again, or send SIGHUP; the log says what was loaded',
      );
    case 'refused':
      return wrong(
        `${file} is refused and older policies are in use: ${reason}`,
        'correct the file; floodgate check lists all mistakes',
      );
    case 'unreadable':
      return wrong(
        `the file that was loaded cannot be read any more: ${reason}`,
        'put it back, or set GATEWAY_POLICIES; without the file, the gateway cannot start again',
      );
    default:
      return state satisfies never;
  }
}

function upstream({ upstream: { origin, problem, fix } }: GatewayReport): Found {
  if (problem === null) return `${origin} answers`;
  return wrong(`${origin} does not answer the gateway: ${problem}`, fix);
}

function store({ store }: GatewayReport): Found {
  if (store === null)
    return wrong(
      'counters are in the memory of one process: they end with it, and no other gateway knows them',
      'set GATEWAY_REDIS_URL to a Redis of its own',
    );
  if (store.problem !== null) return wrong(store.problem, 'start Redis, or correct GATEWAY_REDIS_URL');
  const { version, evictionPolicy, memoryBytesMax, evictedKeys } = store;
  const { foreignKeys, sampledKeys, otherDatabases } = store;
  const evicted = evictedKeys > 0 ? ` and has forgotten ${evictedKeys} keys` : '';
  const shared =
    foreignKeys > 0
      ? `${foreignKeys} of ${sampledKeys} sampled keys are not of the gateway`
      : `it has keys in ${otherDatabases} other ${otherDatabases === 1 ? 'database' : 'databases'}`;
  const mistakes: readonly (readonly [applies: boolean, message: string, fix: string])[] = [
    [
      version !== null && isBefore(version, REDIS_MIN),
      `Redis is ${version}`,
      'use Redis 7 or Valkey; 6.2 is the oldest that works',
    ],
    [
      evictionPolicy !== null && evictionPolicy !== 'noeviction',
      `Redis may forget counters: maxmemory-policy is ${evictionPolicy}${evicted}`,
      'set maxmemory-policy to noeviction',
    ],
    [
      evictionPolicy === 'noeviction' && memoryBytesMax === 0,
      'Redis has no maxmemory: when the machine has no memory left, it is killed with all counters',
      'set maxmemory; a bucket takes about 150 bytes',
    ],
    [
      foreignKeys > 0 || otherDatabases > 0,
      `Redis is shared: ${shared}`,
      'give the gateway a Redis of its own: others fill it, slow it down or empty it',
    ],
  ];
  const found = mistakes.flatMap(([applies, message, fix]) => (applies ? [wrong(message, fix)] : []));
  if (found.length > 0) return found;
  return version === null || evictionPolicy === null
    ? 'the user of GATEWAY_REDIS_URL may not use INFO, so neither version nor eviction is known'
    : `Redis ${version}, which only the gateway uses`;
}

function clock({ now, store }: GatewayReport, here: Here): Found {
  // Windows must not end with a correction of the clock, so a process keeps the time that it was started with.
  const fix =
    'set the clocks by NTP (timedatectl set-ntp true), and restart a gateway that was started or suspended before they were right';
  const hasStore = store !== null && store.problem === null;
  const aheadMs = hasStore ? store.aheadMs : 0;
  if (Math.abs(aheadMs) > CLOCK_MS_MAX)
    return wrong(`the clock of Redis, which windows use, is ${seconds(aheadMs)} the gateway's`, fix);
  if (Math.abs(now - here.now) > CLOCK_MS_MAX)
    return wrong(`the gateway's clock is ${seconds(now - here.now)} this machine's`, fix);
  const all = hasStore ? 'this machine, the gateway and its store' : 'this machine and the gateway';
  return `the clocks of ${all} agree`;
}

function seconds(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

function openFiles({ openFiles: { max, needed } }: GatewayReport): Found {
  if (max === null) return 'the system does not say how many files may be open';
  if (max >= needed) return `${max} files may be open, ${needed} are needed at most`;
  return wrong(
    `only ${max} files may be open, and the bounds add up to ${needed}`,
    `raise the limit (ulimit -n ${needed}, LimitNOFILE= of systemd, ulimits: of Compose), or lower GATEWAY_CONNECTIONS`,
  );
}

function certificate({ tls }: GatewayReport): Found {
  if (tls === null) return null;
  const { file, problem, daysLeft } = tls;
  if (problem !== null)
    return wrong(
      `the gateway goes on with the certificate that it has, and cannot start again: ${problem}`,
      'correct the files of GATEWAY_TLS_CERT and GATEWAY_TLS_KEY; the gateway takes them without a restart',
    );
  const days = daysLeft ?? 0;
  const what = `the certificate in ${file}`;
  return expiryMistake(what, days) ?? `${what} is valid for ${days} more days`;
}

/** @returns null if the certificate is valid for long enough */
export function expiryMistake(what: string, daysLeft: number): Mistake | null {
  if (daysLeft >= DAYS_LEFT_MIN) return null;
  const when = daysLeft < 0 ? 'has expired' : `expires in ${daysLeft} days`;
  return wrong(`${what} ${when}`, 'renew it, and find out why it was not renewed before');
}

function hosts({ hosts }: GatewayReport): Found {
  if (hosts === null) return null;
  const { others, areCounted } = hosts;
  if (others.length === 0) return 'no request came for a host that no policy names';
  const what = `requests came for hosts that no policy names: ${others.join(', ')}`;
  if (areCounted) return `${what}; policies without hosts count them`;
  return wrong(
    what,
    'name them under hosts of a policy, add a policy without hosts, or let the proxy in front refuse them',
  );
}

function foreignPages({ hasForeignPages }: GatewayReport): Found {
  if (!hasForeignPages) return null;
  return wrong(
    'the application lets pages of other origins read its replies, but they cannot read a 429: their browser reports a network error',
    'list the origins under replies: { cors: [ORIGIN] } of the policy file, or write cors: [] if no page needs it',
  );
}

function trustedNetworks({ trust: { tooWide, problems } }: GatewayReport): Found {
  const wide = wrong(
    `GATEWAY_TRUSTED_PROXIES has networks that contain unrelated hosts: ${tooWide.join(', ')}; any of them may name any client`,
    'list the addresses of your own proxies only',
  );
  const refused = problems.map((problem) =>
    wrong(
      `a changed file of GATEWAY_TRUSTED_PROXIES is refused, and the old networks stay trusted: ${problem}`,
      'correct the file; the gateway takes it without a restart',
    ),
  );
  return tooWide.length > 0 ? [wide, ...refused] : refused;
}

/** How the gateway saw two requests of this machine: a normal one, and one that claims another client's address. */
interface Probes {
  readonly plain: Seen;
  readonly claiming: Seen;
  /** Digest of the claimed address. */
  readonly claimed: string;
  /** Trusted proxies; 0: GATEWAY_TRUSTED_PROXIES is no hop count. */
  readonly hops: number;
}

export function clientAddresses({ plain, claiming, claimed, hops }: Probes): Found {
  const isBelieved = claiming.identity === claimed;
  const isBehindProxy = plain.forwardedCount > 0;
  if (plain.addressFrom.startsWith('unreadable'))
    return wrong(
      'requests come without the X-Forwarded-For that GATEWAY_TRUSTED_PROXIES promises, so all clients are counted as one',
      isBehindProxy
        ? 'the number of hops is larger than the number of proxies in front: make it smaller'
        : 'let the proxy append to X-Forwarded-For, or set GATEWAY_TRUSTED_PROXIES to none if there is no proxy',
    );
  if (isBehindProxy && !plain.isPeerTrusted)
    return wrong(
      'requests come through a proxy that is not trusted, so all clients are counted as that proxy',
      'set GATEWAY_TRUSTED_PROXIES to the address of the proxy, or to the number of proxies in front',
    );
  // The probe sends no X-Forwarded-For, so proxies have written all its entries.
  if (hops > 0 && hops < plain.forwardedCount)
    return wrong(
      `requests come through ${plain.forwardedCount} proxies and ${hops} ${hops === 1 ? 'is' : 'are'} trusted, so all clients are counted as one of these proxies`,
      `set GATEWAY_TRUSTED_PROXIES to ${plain.forwardedCount}; if this machine is behind a proxy of its own, ask from another`,
    );
  if (isBelieved)
    return wrong(
      isBehindProxy
        ? 'a client may name any address in X-Forwarded-For and is counted as that: limits by address limit nobody'
        : 'this machine is trusted as a proxy: what it sends may name any client',
      isBehindProxy
        ? 'trust the proxies in front only, and no more hops than there are; if this machine is one of them, ask from another'
        : 'right if a proxy runs here; ask again with --public and the address that clients use, from a machine of theirs',
    );
  return `clients are counted by their own address, from ${plain.addressFrom}`;
}
