/** The set-up of a running gateway; `findings.ts` looks for mistakes in it. */
import { once } from 'node:events';
import * as http from '#gateway/http/node-http.ts';
import { type MatchReport, OTHER_HOSTS_MAX } from '#gateway/observe/traffic.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { upstreamReason } from '#gateway/proxy/upstream-reason.ts';
import { type ProxyTrust, writtenNetwork } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { unixPart } from '#shared/unix-socket.ts';
import { timeLimit } from '#shared/within.ts';
import type { AdminGateway } from './context.ts';
import { spellingsOf } from './spellings.ts';

const UPSTREAM_MS: Millis = 3000;
/** Maximum number of networks that one finding lists. */
const TOO_WIDE_MAX = 10;
/** File descriptors of the process itself: for the store, logs, listeners and the runtime. */
const OWN_FILES = 64;
/** By the bytes of an address. Networks with a shorter prefix contain unrelated hosts. 10.0.0.0/8 and fc00::/7 are the largest private networks. */
const PREFIX_BITS_MIN: Readonly<Record<number, number>> = { 4: 8, 16: 7 };

export type GatewayReport = Awaited<ReturnType<typeof gatewayReport>>;

export async function gatewayReport(gateway: AdminGateway) {
  const { clock, doctor } = gateway;
  const { config } = doctor;
  const policies = gateway.policies();
  const [upstream, store, processes] = await Promise.all([
    upstreamProblem(config.upstream),
    storeReport(gateway),
    gateway.processes(),
  ]);
  const matches = processes.map((process) => process.matches);
  const { connections, upstream_connections, upgrades } = config.bounds;
  return {
    version: doctor.version,
    nodeVersion: doctor.nodeVersion,
    publicPort: doctor.publicPort(),
    /** The gateway's own certificate, as on the disk; null if the public port is not for HTTPS. */
    tls: doctor.certificate?.(clock()) ?? null,
    now: clock(),
    policies: policyReport(gateway),
    trust: trustReport(gateway.trust),
    hosts: hostReport(policies, matches),
    /** Whether pages of other origins use the application, and the policy file does not have `replies: cors`. */
    hasForeignPages: matches.some(({ hasForeignPages }) => hasForeignPages),
    /** Paths for the test of upper and lower case. */
    spellings: spellingsOf(policies),
    openFiles: {
      max: doctor.openFilesMax(),
      needed: connections.total + upstream_connections.total + upgrades.total + OWN_FILES,
    },
    /** `problem` is null if the upstream answers; `fix` says how to correct it. */
    upstream: { origin: config.upstream, problem: upstream?.reason ?? null, fix: upstream?.fix ?? '' },
    store,
  };
}

/** Returns hosts of requests that no policy names; null if no policy names any. */
function hostReport({ policies }: PolicySet, matches: readonly MatchReport[]) {
  const isForAll = ({ hosts }: LoadedPolicy): boolean => hosts === null;
  if (policies.every(isForAll)) return null;
  const others = [...new Set(matches.flatMap(({ otherHosts }) => otherHosts))].slice(0, OTHER_HOSTS_MAX);
  return { others, /** Whether policies count all hosts. */ areCounted: policies.some(isForAll) };
}

/** Compares the file with the policies in use, whose version it gives. */
function policyReport({ policies, policyText, policyRefusal, doctor }: AdminGateway) {
  const { file, version } = policies();
  let text: string;
  try {
    text = doctor.readPolicyFile(file);
  } catch (error) {
    return { file, version, state: 'unreadable', reason: (error as Error).message } as const;
  }
  const reason = policyRefusal();
  if (reason !== null) return { file, version, state: 'refused', reason } as const;
  return { file, version, state: text === policyText() ? 'same' : 'changed', reason: null } as const;
}

function trustReport(trust: ProxyTrust) {
  if (trust.kind !== 'cidrs')
    return { kind: trust.kind, hops: trust.kind === 'hops' ? trust.hops : 0, tooWide: [], problems: [] };
  const { all, files } = trust.networks;
  const tooWide = all.filter(({ bytes, bits }) => bits < (PREFIX_BITS_MIN[bytes.length] ?? 0));
  return {
    kind: 'cidrs',
    hops: 0,
    /** Trusted networks that are so large that they contain unrelated hosts. */
    tooWide: tooWide.slice(0, TOO_WIDE_MAX).map(writtenNetwork),
    /** Why changed files of trusted proxies are not in use. */
    problems: files.flatMap(({ problem }) => problem ?? []),
  };
}

/** @returns the problem with the upstream; null if it sends any reply */
async function upstreamProblem(origin: string): Promise<ReturnType<typeof upstreamReason> | null> {
  try {
    await headOf(origin, timeLimit(UPSTREAM_MS));
    return null;
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
    if (name === 'TimeoutError')
      return upstreamReason({ code: 'ETIMEDOUT', message: `no answer within ${UPSTREAM_MS} ms` });
    const { code = '', message: text } = cause ?? (error as NodeJS.ErrnoException);
    return upstreamReason({ code, message: text || message });
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

/** @returns null if counters are in the memory of the process */
async function storeReport({ control, clock }: AdminGateway) {
  const askedAt = clock();
  try {
    const report = await control.storeReport();
    if (report === null) return null;
    // How far the store's clock is ahead of the gateway's.
    const aheadMs = Math.round(report.now - (askedAt + clock()) / 2);
    return { ...report, problem: null, aheadMs };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
