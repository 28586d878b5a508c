/**
 * Finds mistakes in a set-up and says how to correct them. Pure: it reads the gateway's report and the results of
 * probes.
 */
import type { Seen } from '#gateway/request/probe.ts';
import { isBefore, nodeHole } from './node-holes.ts';
import type { GatewayReport } from './report.ts';

export interface Finding {
  readonly check: CheckName;
  readonly ok: boolean;
  readonly message: string;
  /** How to correct the mistake; empty if there is nothing to do. */
  readonly fix: string;
}

type CheckName =
  | 'admin-access'
  | 'versions'
  | 'policy-file'
  | 'upstream'
  | 'store'
  | 'clock'
  | 'open-files'
  | 'hosts'
  | 'other-origins'
  | 'trusted-proxies'
  | 'public-address'
  | 'tls'
  | 'certificate'
  | 'path-spelling';

const CLOCK_MS_MAX = 2000;
/**
 * Warn this long before a certificate expires. By then it is overdue, because certificates are usually renewed a month
 * before.
 */
const DAYS_LEFT_MIN = 14;
const NODE_MIN = [24, 7] as const;
const REDIS_MIN = [6, 2] as const;

/** @param here version and clock of the command; the time is that in the middle of the request for the report */
export function reportFindings(
  report: GatewayReport,
  here: { readonly version: string; readonly now: number },
): Finding[] {
  return [
    versions(report, here.version),
    policyFile(report),
    upstream(report),
    ...store(report),
    clock(report, here.now),
    openFiles(report),
    ...ownCertificate(report),
    ...otherHosts(report),
    ...foreignPages(report),
    ...wideTrust(report),
    ...refusedTrust(report),
  ];
}

export function good(check: CheckName, message: string): Finding {
  return { check, ok: true, message, fix: '' };
}

export function bad(check: CheckName, message: string, fix: string): Finding {
  return { check, ok: false, message, fix };
}

function versions({ version, nodeVersion }: GatewayReport, here: string): Finding {
  if (isBefore(nodeVersion, NODE_MIN))
    return bad(
      'versions',
      `the gateway runs on Node.js ${nodeVersion}`,
      `use ${NODE_MIN.join('.')} or later`,
    );
  const hole = nodeHole(nodeVersion);
  if (hole !== null) return bad('versions', hole.message, hole.fix);
  if (version !== here)
    return bad(
      'versions',
      `the gateway is ${version}, this command is ${here}`,
      'run the command of the version that the gateway has: the one in its image, say',
    );
  return good('versions', `Floodgate ${version} on Node.js ${nodeVersion}`);
}

function policyFile({ policies: { file, version, state, reason } }: GatewayReport): Finding {
  switch (state) {
    case 'same':
      return good('policy-file', `${file} is in use, version ${version}`);
    case 'changed':
      return bad(
        'policy-file',
        `${file} has changed and is not in use yet`,
        'wait a second and ask again, or send SIGHUP; the log says what was loaded',
      );
    case 'refused':
      return bad(
        'policy-file',
        `${file} is refused and older policies are in use: ${reason}`,
        'correct the file; floodgate check lists all mistakes',
      );
    case 'unreadable':
      return bad(
        'policy-file',
        `the file that was loaded cannot be read any more: ${reason}`,
        'put it back, or set GATEWAY_POLICIES; without the file, the gateway cannot start again',
      );
    default:
      return state satisfies never;
  }
}

function upstream({ upstream: { origin, problem, fix } }: GatewayReport): Finding {
  if (problem === null) return good('upstream', `${origin} answers`);
  return bad('upstream', `${origin} does not answer the gateway: ${problem}`, fix);
}

function store({ store }: GatewayReport): Finding[] {
  if (store === null) {
    return [
      bad(
        'store',
        'counters are in the memory of one process: they end with it, and no other gateway knows them',
        'set GATEWAY_REDIS_URL to a Redis of its own',
      ),
    ];
  }
  if (store.problem !== null)
    return [bad('store', store.problem, 'start Redis, or correct GATEWAY_REDIS_URL')];
  const found: Finding[] = [];
  const { version, evictionPolicy, memoryBytesMax, evictedKeys } = store;
  if (version !== null && isBefore(version, REDIS_MIN))
    found.push(bad('store', `Redis is ${version}`, 'use Redis 7 or Valkey; 6.2 is the oldest that works'));
  if (evictionPolicy !== null && evictionPolicy !== 'noeviction') {
    const evicted = evictedKeys > 0 ? ` and has forgotten ${evictedKeys} keys` : '';
    found.push(
      bad(
        'store',
        `Redis may forget counters: maxmemory-policy is ${evictionPolicy}${evicted}`,
        'set maxmemory-policy to noeviction',
      ),
    );
  } else if (memoryBytesMax === 0 && evictionPolicy !== null) {
    found.push(
      bad(
        'store',
        'Redis has no maxmemory: when the machine has no memory left, it is killed with all counters',
        'set maxmemory; a bucket takes about 150 bytes',
      ),
    );
  }
  const { foreignKeys, sampledKeys, otherDatabases } = store;
  if (foreignKeys > 0 || otherDatabases > 0) {
    const what =
      foreignKeys > 0
        ? `${foreignKeys} of ${sampledKeys} sampled keys are not of the gateway`
        : `it has keys in ${otherDatabases} other ${otherDatabases === 1 ? 'database' : 'databases'}`;
    found.push(
      bad(
        'store',
        `Redis is shared: ${what}`,
        'give the gateway a Redis of its own: others fill it, slow it down or empty it',
      ),
    );
  }
  if (found.length > 0) return found;
  return [
    version === null || evictionPolicy === null
      ? good(
          'store',
          'the user of GATEWAY_REDIS_URL may not use INFO, so neither version nor eviction is known',
        )
      : good('store', `Redis ${version}, which only the gateway uses`),
  ];
}

function clock({ now, store }: GatewayReport, here: number): Finding {
  // Windows must not end with a correction of the clock, so a process keeps the time that it was started with.
  const fix =
    'set the clocks by NTP (timedatectl set-ntp true), and restart a gateway that was started or suspended before they were right';
  const hasStore = store !== null && store.problem === null;
  const aheadMs = hasStore ? store.aheadMs : 0;
  if (Math.abs(aheadMs) > CLOCK_MS_MAX)
    return bad('clock', `the clock of Redis, which windows use, is ${seconds(aheadMs)} the gateway's`, fix);
  if (Math.abs(now - here) > CLOCK_MS_MAX)
    return bad('clock', `the gateway's clock is ${seconds(now - here)} this machine's`, fix);
  const all = hasStore ? 'this machine, the gateway and its store' : 'this machine and the gateway';
  return good('clock', `the clocks of ${all} agree`);
}

function seconds(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

function openFiles({ openFiles: { max, needed } }: GatewayReport): Finding {
  if (max === null) return good('open-files', 'the system does not say how many files may be open');
  if (max >= needed) return good('open-files', `${max} files may be open, ${needed} are needed at most`);
  return bad(
    'open-files',
    `only ${max} files may be open, and the bounds add up to ${needed}`,
    `raise the limit (ulimit -n ${needed}, LimitNOFILE= of systemd, ulimits: of Compose), or lower GATEWAY_CONNECTIONS`,
  );
}

function ownCertificate({ tls }: GatewayReport): Finding[] {
  if (tls === null) return [];
  const { file, problem, daysLeft } = tls;
  if (problem !== null)
    return [
      bad(
        'certificate',
        `the gateway goes on with the certificate that it has, and cannot start again: ${problem}`,
        'correct the files of GATEWAY_TLS_CERT and GATEWAY_TLS_KEY; the gateway takes them without a restart',
      ),
    ];
  const days = daysLeft ?? 0;
  const mistake = expiryMistake(`the certificate in ${file}`, days);
  if (mistake !== null) return [bad('certificate', ...mistake)];
  return [good('certificate', `the certificate in ${file} is valid for ${days} more days`)];
}

/** @returns null if the certificate is valid for long enough */
export function expiryMistake(
  what: string,
  daysLeft: number,
): readonly [message: string, fix: string] | null {
  if (daysLeft >= DAYS_LEFT_MIN) return null;
  const when = daysLeft < 0 ? 'has expired' : `expires in ${daysLeft} days`;
  return [`${what} ${when}`, 'renew it, and find out why it was not renewed before'];
}

function otherHosts({ hosts }: GatewayReport): Finding[] {
  if (hosts === null) return [];
  const { others, areCounted } = hosts;
  if (others.length === 0) return [good('hosts', 'no request came for a host that no policy names')];
  const what = `requests came for hosts that no policy names: ${others.join(', ')}`;
  if (areCounted) return [good('hosts', `${what}; policies without hosts count them`)];
  return [
    bad(
      'hosts',
      what,
      'name them under hosts of a policy, add a policy without hosts, or let the proxy in front refuse them',
    ),
  ];
}

function foreignPages({ hasForeignPages }: GatewayReport): Finding[] {
  if (!hasForeignPages) return [];
  return [
    bad(
      'other-origins',
      'the application lets pages of other origins read its replies, but they cannot read a 429: their browser reports a network error',
      'list the origins under replies: { cors: [ORIGIN] } of the policy file, or write cors: [] if no page needs it',
    ),
  ];
}

function wideTrust({ trust: { tooWide } }: GatewayReport): Finding[] {
  if (tooWide.length === 0) return [];
  return [
    bad(
      'trusted-proxies',
      `GATEWAY_TRUSTED_PROXIES has networks that contain unrelated hosts: ${tooWide.join(', ')}; any of them may name any client`,
      'list the addresses of your own proxies only',
    ),
  ];
}

function refusedTrust({ trust: { problems } }: GatewayReport): Finding[] {
  return problems.map((problem) =>
    bad(
      'trusted-proxies',
      `a changed file of GATEWAY_TRUSTED_PROXIES is refused, and the old networks stay trusted: ${problem}`,
      'correct the file; the gateway takes it without a restart',
    ),
  );
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

export function trustFinding({ plain, claiming, claimed, hops }: Probes): Finding {
  const isBelieved = claiming.identity === claimed;
  const isBehindProxy = plain.forwardedCount > 0;
  if (plain.addressFrom.startsWith('unreadable')) {
    return bad(
      'trusted-proxies',
      'requests come without the X-Forwarded-For that GATEWAY_TRUSTED_PROXIES promises, so all clients are counted as one',
      isBehindProxy
        ? 'the number of hops is larger than the number of proxies in front: make it smaller'
        : 'let the proxy append to X-Forwarded-For, or set GATEWAY_TRUSTED_PROXIES to none if there is no proxy',
    );
  }
  if (isBehindProxy && !plain.isPeerTrusted) {
    return bad(
      'trusted-proxies',
      'requests come through a proxy that is not trusted, so all clients are counted as that proxy',
      'set GATEWAY_TRUSTED_PROXIES to the address of the proxy, or to the number of proxies in front',
    );
  }
  // The probe sends no X-Forwarded-For, so proxies have written all its entries.
  if (hops > 0 && hops < plain.forwardedCount) {
    return bad(
      'trusted-proxies',
      `requests come through ${plain.forwardedCount} proxies and ${hops} ${hops === 1 ? 'is' : 'are'} trusted, so all clients are counted as one of these proxies`,
      `set GATEWAY_TRUSTED_PROXIES to ${plain.forwardedCount}; if this machine is behind a proxy of its own, ask from another`,
    );
  }
  if (isBelieved) {
    return bad(
      'trusted-proxies',
      isBehindProxy
        ? 'a client may name any address in X-Forwarded-For and is counted as that: limits by address limit nobody'
        : 'this machine is trusted as a proxy: what it sends may name any client',
      isBehindProxy
        ? 'trust the proxies in front only, and no more hops than there are; if this machine is one of them, ask from another'
        : 'right if a proxy runs here; ask again with --public and the address that clients use, from a machine of theirs',
    );
  }
  return good('trusted-proxies', `clients are counted by their own address, from ${plain.addressFrom}`);
}
