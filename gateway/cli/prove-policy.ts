/** Does a running gateway admit exactly the limit of a policy? One policy, one client that nobody has counted yet. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Policy } from '#gateway/policy/policy.ts';
import { type SampleRequest, sampleClient } from '#gateway/rehearsal/sample-request.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** Fewer than the gateway lets one client have at the upstream. */
const PARALLEL = 32;
const TIMEOUT_MS = 30_000;
const ATTEMPTS = 3;
/** What the slowest gateway is taken to answer, to find a window with room. */
const REQUESTS_PER_SECOND = 200;

export interface ProofOptions {
  /** Origin of the public listener. */
  readonly gateway: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly waitSecondsMax: number;
  readonly now: () => number;
}

export interface Proof {
  readonly policy: string;
  readonly sent: number;
  readonly admitted: number;
  readonly limit: number;
  readonly exact: boolean;
  /** Why it is not, where that is known. */
  readonly note: string | null;
}

export async function prove(policy: Policy, request: SampleRequest, options: ProofOptions): Promise<Proof> {
  const { name, limit } = policy;
  const wanted = limit + Math.max(5, Math.ceil(limit / 10));
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
      if (left > options.waitSecondsMax) break;
      await delay(left * 1000 + 100);
      continue;
    }
    const replies = await inParallel(wanted - 1, ask);
    sent += replies.length;
    admitted += replies.filter((reply) => !isDenied(reply)).length;
    if (options.now() - begun < left * 1000) {
      const exact = admitted === limit;
      return { policy: name, sent, admitted, limit, exact, note: exact ? null : noteOf(admitted, limit) };
    }
    note = 'the window ended meanwhile';
  }
  return { policy: name, sent, admitted, limit, exact: false, note };
}

function noteOf(admitted: number, limit: number): string {
  return admitted > limit
    ? 'more than the limit: does the gateway use this file, and do all gateways use one store?'
    : 'fewer than the limit: does the gateway use this file, and is another policy or a bound in the way?';
}

type Ask = () => Promise<Headers>;

/** Each call sends one request of the same client. */
function asker(
  policy: Policy,
  { method, target }: SampleRequest,
  options: ProofOptions,
  attempt: number,
): Ask {
  const chance = createHash('sha256').update(`${policy.name} ${attempt} ${options.now()}`).digest();
  // Of the block for measurements (RFC 2544): nobody's address. It counts where the gateway trusts this machine.
  const address = `198.${18 + ((chance[0] ?? 0) & 1)}.${chance[1]}.${chance[2]}`;
  const client = sampleClient(policy, chance.toString('hex', 3, 19));
  const headers = new Headers([['x-forwarded-for', address], ...client.headers.map(([...field]) => field)]);
  for (const [name, value] of options.headers) headers.set(name, value);
  const url = new URL(target + client.query, options.gateway);
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
    } catch {
      throw new CommandError(
        `no gateway answers on ${options.gateway}; is it running, and is this its public listener (GATEWAY_PORT)?`,
        EXIT.unreachable,
      );
    }
    return response.headers;
  };
}

async function inParallel(count: number, ask: Ask): Promise<Headers[]> {
  const replies: Headers[] = [];
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun < count) {
      begun++;
      replies.push(await ask());
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, lane));
  return replies;
}

function isDenied(headers: Headers): boolean {
  return headers.get('x-gateway-ratelimited') === 'true';
}

/** The limit that the gateway tells; null where it tells none. */
function quotaOf(headers: Headers, name: string): number | null {
  for (const item of (headers.get('ratelimit-policy') ?? '').split(',')) {
    const [, policy, quota] = /^\s*"([^"]*)";q=(\d+)/.exec(item) ?? [];
    if (policy === name) return Number(quota);
  }
  return null;
}

/** Seconds left of the window and requests left in it; by this machine's clock where replies do not tell. */
function stateOf(
  headers: Headers,
  { name, windowSeconds }: Policy,
  now: number,
): { readonly left: number; readonly remaining: number | null } {
  for (const item of (headers.get('ratelimit') ?? '').split(',')) {
    const [, policy, remaining, left] = /^\s*"([^"]*)";r=(\d+);t=(\d+)/.exec(item) ?? [];
    if (policy === name) return { left: Number(left), remaining: Number(remaining) };
  }
  return { left: windowSeconds - ((now / 1000) % windowSeconds), remaining: null };
}
