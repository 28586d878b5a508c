/** The set-up of a running gateway; `findings.ts` looks for mistakes in it. */
import { once } from 'node:events';
import type { BoundSettings } from '#gateway/bounds/bounds.ts';
import * as http from '#gateway/http/node-http.ts';
import { type KeyPairFiles, readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import type { Control } from '#gateway/operate/control/control.ts';
import type { StoreReport } from '#gateway/operate/control/store-report.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { unixPart } from '#shared/unix-socket.ts';
import { type KeyPlace, keyPlacesOf, type Spelling, spellingsOf } from './spellings.ts';

/** Data that only doctor needs, not the rest of the admin API. */
export interface DoctorSources {
  readonly config: {
    /** Origin, without a path. */
    readonly upstream: string;
    readonly bounds: BoundSettings;
    readonly adminHost: string;
    /** Settings of TLS; null if the public listener uses plain HTTP. */
    readonly tls: KeyPairFiles | null;
  };
  readonly readPolicyFile: (file: string) => string;
  /** Returns how many file descriptors a process may have open; null if the system does not report it. */
  readonly openFilesMax: () => number | null;
  /** Version of this gateway; `nodeVersion` is that of Node.js. */
  readonly version: string;
  readonly nodeVersion: string;
  readonly publicPort: () => number;
}

export interface GatewayReport {
  readonly version: string;
  readonly nodeVersion: string;
  readonly publicPort: number;
  /** The gateway's own certificate, as on the disk; null if the public port is not for HTTPS. */
  readonly tls: CertificateReport | null;
  /** Milliseconds since the epoch. */
  readonly now: Millis;
  readonly policies: PolicyReport;
  readonly trust: TrustReport;
  /** Paths for the test of upper and lower case. */
  readonly spellings: readonly Spelling[];
  readonly keyPlaces: readonly KeyPlace[];
  readonly openFiles: { readonly max: number | null; readonly needed: number };
  /** `problem` is null if the upstream answers. */
  readonly upstream: { readonly origin: string; readonly problem: string | null };
  /** State of the store; null if counters are in the memory of the process. */
  readonly store:
    | { readonly problem: string }
    | (StoreReport & {
        readonly problem: null;
        /** How far the store's clock is ahead of the gateway's. */
        readonly aheadMs: Millis;
      })
    | null;
}

interface CertificateReport {
  readonly file: string;
  /** Why the files cannot be used; null if they can. */
  readonly problem: string | null;
  /** null with a problem */
  readonly daysLeft: number | null;
}

interface PolicyReport {
  readonly file: string;
  /** Version of the policy file in use. */
  readonly version: string;
  /** Compares the file with the policies in use. */
  readonly state: 'same' | 'changed' | 'refused' | 'unreadable';
  /** Why the file is not in use; null if it is in use, or soon will be. */
  readonly reason: string | null;
}

interface TrustReport {
  readonly kind: ProxyTrust['kind'];
  readonly hops: number;
  /** Trusted networks that are so large that they contain unrelated hosts. */
  readonly tooWide: readonly string[];
}

interface ReportParts extends DoctorSources {
  readonly policies: PolicySet;
  readonly policyText: () => string;
  readonly policyRefusal: () => string | null;
  readonly trust: ProxyTrust;
  readonly control: Control;
  readonly clock: Clock;
}

const UPSTREAM_MS: Millis = 3000;
const DAY_MS: Millis = 86_400_000;
/** File descriptors of the process itself: for the store, logs, listeners and the runtime. */
const OWN_FILES = 64;
/** Networks with a shorter prefix contain unrelated hosts. 10.0.0.0/8 and fc00::/7 are the largest private networks. */
const PREFIX_BITS_MIN = { ipv4: 8, ipv6: 7 } as const;

export async function gatewayReport(parts: ReportParts): Promise<GatewayReport> {
  const { config, clock, policies, trust } = parts;
  const [upstream, store] = await Promise.all([upstreamProblem(config.upstream), storeReport(parts)]);
  const { connections, upstream_connections, upgrades } = config.bounds;
  return {
    version: parts.version,
    nodeVersion: parts.nodeVersion,
    publicPort: parts.publicPort(),
    tls: config.tls === null ? null : certificateReport(config.tls, clock()),
    now: clock(),
    policies: policyReport(parts),
    trust: trustReport(trust),
    spellings: spellingsOf(policies),
    keyPlaces: keyPlacesOf(policies),
    openFiles: {
      max: parts.openFilesMax(),
      needed: connections.total + upstream_connections.total + upgrades.total + OWN_FILES,
    },
    upstream: { origin: config.upstream, problem: upstream },
    store,
  };
}

function certificateReport(files: KeyPairFiles, now: Millis): CertificateReport {
  const file = files.cert;
  try {
    return { file, problem: null, daysLeft: Math.floor((readKeyPair(files).expiresAt - now) / DAY_MS) };
  } catch (error) {
    return { file, problem: (error as Error).message, daysLeft: null };
  }
}

function policyReport({ policies, policyText, policyRefusal, readPolicyFile }: ReportParts): PolicyReport {
  const { file, version } = policies;
  let text: string;
  try {
    text = readPolicyFile(file);
  } catch (error) {
    return { file, version, state: 'unreadable', reason: (error as Error).message };
  }
  const reason = policyRefusal();
  if (reason !== null) return { file, version, state: 'refused', reason };
  return { file, version, state: text === policyText() ? 'same' : 'changed', reason: null };
}

function trustReport(trust: ProxyTrust): TrustReport {
  if (trust.kind !== 'cidrs')
    return { kind: trust.kind, hops: trust.kind === 'hops' ? trust.hops : 0, tooWide: [] };
  const tooWide = trust.cidrs.filter(([network, bits]) => bits < PREFIX_BITS_MIN[network.kind()]);
  return { kind: 'cidrs', hops: 0, tooWide: tooWide.map(([network, bits]) => `${network}/${bits}`) };
}

/** @returns the problem with the upstream; null if it sends any reply */
async function upstreamProblem(origin: string): Promise<string | null> {
  try {
    await headOf(origin, AbortSignal.timeout(UPSTREAM_MS));
    return null;
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
    return name === 'TimeoutError'
      ? `no answer within ${UPSTREAM_MS} ms`
      : (cause?.code ?? cause?.message ?? message);
  }
}

/** Waits for any reply. fetch does not support Unix sockets. */
async function headOf(origin: string, signal: AbortSignal): Promise<void> {
  const socketPath = unixPart(origin);
  if (socketPath !== null) {
    const asked = http.request({ socketPath, method: 'HEAD', agent: false, signal }).end();
    const [reply] = await once(asked, 'response', { signal });
    reply.resume();
    return;
  }
  const response = await fetch(origin, { method: 'HEAD', redirect: 'manual', signal });
  await response.body?.cancel();
}

async function storeReport({ control, clock }: ReportParts): Promise<GatewayReport['store']> {
  const askedAt = clock();
  try {
    const report = await control.storeReport();
    if (report === null) return null;
    return { ...report, problem: null, aheadMs: Math.round(report.now - (askedAt + clock()) / 2) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
