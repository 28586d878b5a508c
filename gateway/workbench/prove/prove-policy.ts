/** Tests whether a running gateway admits exactly the limit of a policy, as a client without any usage. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Policy } from '#gateway/policy/policy.ts';
import { type SampleRequest, sampleClient } from '#gateway/workbench/rehearsal/sample-request.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { IN_FLIGHT_EXTRA, noGateway, sendInFlight } from './prove-in-flight.ts';

/** Maximum number of requests at once. It is lower than the share of one client at the upstream. */
const PARALLEL = 32;
const TIMEOUT_MS = 30_000;
const ATTEMPTS = 3;
/** Requests per second of a slow gateway, used to find a window with enough time left. */
export const REQUESTS_PER_SECOND = 200;

interface ProofOptions {
  readonly origin: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly waitSecondsMax: number;
  /** The lowest limit of requests in flight of all policies. */
  readonly inFlightMax: number;
  readonly now: () => number;
}

export interface Proof {
  readonly policy: string;
  readonly sent: number;
  readonly admitted: number;
  readonly limit: number;
  /** How much a token bucket may have refilled during the test; otherwise 0. */
  readonly refilled: number;
  readonly exact: boolean;
  /** The reason for a failure, if it is known. */
  readonly note: string | null;
}

export async function prove(policy: Policy, request: SampleRequest, options: ProofOptions): Promise<Proof> {
  if (policy.algorithm === 'concurrency') return proveInFlight(policy, request, options);
  const { name, capacity: limit } = policy;
  const wanted = wantedOf(policy);
  let sent = 0;
  let admitted = 0;
  let note = '';
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const ask = asker(policy, request, options, attempt);
    const begun = options.now();
    const first = await ask();
    const { left, remaining } = stateOf(first, policy, begun);
    const quota = quotaOf(first, name);
    sent = 1;
    admitted = isDenied(first) ? 0 : 1;
    if (quota !== null && quota !== limit) {
      note = `the gateway has another limit for it, ${quota}; it does not use this file`;
      break;
    }
    const isUsed = isDenied(first) || (remaining !== null && remaining !== limit - 1);
    const needed = Math.min(wanted / REQUESTS_PER_SECOND + 1, policy.windowSeconds / 2);
    if (isUsed || left < needed) {
      note = isUsed
        ? 'this client was counted before in this window; wait for the next one, or run where the gateway trusts X-Forwarded-For'
        : 'the window was about to end';
      // A sliding window is empty after two windows.
      const waitSeconds =
        isUsed && policy.algorithm === 'sliding-window' ? left + policy.windowSeconds : left;
      if (waitSeconds > options.waitSecondsMax) break;
      await delay(waitSeconds * 1000 + 100);
      continue;
    }
    const replies = await inParallel(wanted - 1, Math.min(PARALLEL, options.inFlightMax), ask);
    sent += replies.length;
    admitted += replies.filter((reply) => !isDenied(reply)).length;
    const tookMs = options.now() - begun;
    const refilled =
      policy.algorithm === 'token-bucket'
        ? Math.ceil((tookMs * policy.limit) / (policy.windowSeconds * 1000))
        : 0;
    if (tookMs < left * 1000 && sent > limit + refilled) {
      const exact = admitted >= limit && admitted <= limit + refilled;
      const note = exact ? null : noteOf(admitted, limit);
      return { policy: name, sent, admitted, limit, refilled, exact, note };
    }
    if (policy.algorithm === 'token-bucket') {
      note = 'it refilled faster than requests could be sent';
      break;
    }
    note = 'the window ended meanwhile';
  }
  return { policy: name, sent, admitted, limit, refilled: 0, exact: false, note };
}

/** Returns how many requests to send: more than the limit and all refills. */
function wantedOf({ algorithm, capacity, limit, windowSeconds }: Policy): number {
  if (algorithm === 'concurrency') return capacity + IN_FLIGHT_EXTRA;
  const more = capacity + Math.max(5, Math.ceil(capacity / 10));
  if (algorithm !== 'token-bucket') return more;
  return more + Math.ceil((2 * more * limit) / (windowSeconds * REQUESTS_PER_SECOND));
}

async function proveInFlight(policy: Policy, request: SampleRequest, options: ProofOptions): Promise<Proof> {
  const { name, limit } = policy;
  const { url, headers } = clientOf(policy, request, options, 0);
  const { sent, denied, others } = await sendInFlight(url, request.method, headers, limit);
  const admitted = sent - denied - others.length;
  const exact = admitted === limit && others.length === 0;
  const note = exact
    ? null
    : others.length > 0
      ? `${others.length} were answered with ${others[0]} while they kept back their bodies: is another bound in the way?`
      : noteOf(admitted, limit);
  return { policy: name, sent, admitted, limit, refilled: 0, exact, note };
}

function noteOf(admitted: number, limit: number): string {
  return admitted > limit
    ? 'more than the limit: does the gateway use this file, and do all gateways use one store?'
    : 'fewer than the limit: does the gateway use this file, and is another policy or a bound in the way?';
}

type Ask = () => Promise<Headers>;

/** Returns a function that sends one request of the same client per call. */
function asker(policy: Policy, request: SampleRequest, options: ProofOptions, attempt: number): Ask {
  const { method } = request;
  const { url, headers } = clientOf(policy, request, options, attempt);
  return async () => {
    let response: Response;
    try {
      response = await fetch(url, {
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
    } catch (error) {
      if ((error as Error).name === 'TimeoutError')
        throw new CommandError(
          `${options.origin} gave no answer within ${TIMEOUT_MS} ms; it is there, but the gateway or the application is busy`,
          EXIT.unreachable,
        );
      throw noGateway(options.origin);
    }
    return response.headers;
  };
}

/** Returns a client without any usage. */
function clientOf(
  policy: Policy,
  { target }: SampleRequest,
  options: ProofOptions,
  attempt: number,
): { readonly url: URL; readonly headers: Headers } {
  const chance = createHash('sha256').update(`${policy.name} ${attempt} ${options.now()}`).digest();
  // An address from the block for benchmarks (RFC 2544). The gateway uses it if it trusts this machine.
  const address = `198.${18 + ((chance[0] ?? 0) & 1)}.${chance[1]}.${chance[2]}`;
  const client = sampleClient(policy, chance.toString('hex', 3, 19));
  const headers = new Headers([['x-forwarded-for', address], ...client.headers.map(([...field]) => field)]);
  for (const [name, value] of options.headers) headers.set(name, value);
  return { url: new URL(target + client.query, options.origin), headers };
}

async function inParallel(count: number, lanes: number, ask: Ask): Promise<Headers[]> {
  const replies: Headers[] = [];
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun < count) {
      begun++;
      replies.push(await ask());
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return replies;
}

function isDenied(headers: Headers): boolean {
  return headers.get('x-gateway-ratelimited') === 'true';
}

/** Returns the limit in the reply's headers; null without them. */
function quotaOf(headers: Headers, name: string): number | null {
  for (const item of (headers.get('ratelimit-policy') ?? '').split(',')) {
    const [, policy, quota] = /^\s*"([^"]*)";q=(\d+)/.exec(item) ?? [];
    if (policy === name) return Number(quota);
  }
  return null;
}

/**
 * Returns the remaining seconds of the window and the remaining requests. Without limit headers, it uses this machine's
 * clock.
 */
function stateOf(
  headers: Headers,
  { name, algorithm, windowSeconds, calendar }: Policy,
  now: number,
): { readonly left: number; readonly remaining: number | null } {
  // A token bucket has no windows, because tokens refill steadily.
  const endless = algorithm === 'token-bucket' ? Number.POSITIVE_INFINITY : null;
  for (const item of (headers.get('ratelimit') ?? '').split(',')) {
    const [, policy, remaining, reset] = /^\s*"([^"]*)";r=(\d+);t=(\d+)/.exec(item) ?? [];
    if (policy !== name) continue;
    // For a sliding window, also wait for the next window, because only then it is empty again.
    const left = Number(reset) - (algorithm === 'sliding-window' ? windowSeconds : 0);
    return { left: endless ?? left, remaining: Number(remaining) };
  }
  const end = calendar?.windowAt(now).end ?? now + windowSeconds * 1000 - (now % (windowSeconds * 1000));
  return { left: endless ?? (end - now) / 1000, remaining: null };
}
