/**
 * Makes a request that a policy limits, and no tighter policy. It is built from the route and confirmed by a rehearsal.
 */
import { partsOf } from '#gateway/identity/identifier.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { Rehearsal } from './rehearsal.ts';

const FROM = '192.0.2.1';

export interface SampleRequest {
  readonly method: string;
  readonly target: string;
}

/**
 * @param methods that may be used; those of the route, HEAD for GET
 * @param segment value of every parameter of the route
 * @returns null if another policy denies every such request earlier, if no policy counts it, or if it needs a token
 */
export function sampleRequest(
  set: PolicySet,
  policy: LoadedPolicy,
  methods: readonly string[],
  segment: string,
): SampleRequest | null {
  const target = `/${policy.route.segments
    .map((part) => (part.kind === 'literal' ? encodeURIComponent(part.text) : segment))
    .join('/')}`;
  for (const method of methods) {
    if (policy.route.methods !== null && !policy.route.methods.has(method === 'HEAD' ? 'GET' : method))
      continue;
    if (isLimitedBy(set, policy, { method, target })) return { method, target };
  }
  return null;
}

/** The identity of a client in a request. */
interface SampleClient {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The query after the path: '' or beginning with `?`. */
  readonly query: string;
}

/** Returns a client with a credential of each kind that the policy counts. */
export function sampleClient({ identifier }: LoadedPolicy, credential: string): SampleClient {
  const headers: [string, string][] = [];
  const query = new URLSearchParams();
  for (const part of partsOf(identifier)) {
    const [source] = part.kind === 'credential' ? part.sources : [];
    if (source === undefined) continue;
    switch (source.kind) {
      case 'header':
        headers.push([source.header, credential]);
        break;
      case 'bearer':
        headers.push(['authorization', `Bearer ${source.prefix}${credential}`]);
        break;
      case 'cookie':
        headers.push(['cookie', `${source.cookie}=${credential}`]);
        break;
      case 'query':
        query.set(source.parameter, credential);
        break;
      default:
        source satisfies never;
    }
  }
  return { headers, query: query.size === 0 ? '' : `?${query}` };
}

function isLimitedBy(set: PolicySet, policy: LoadedPolicy, { method, target }: SampleRequest): boolean {
  const rehearsal = new Rehearsal(set, { clock: () => 0 });
  const { headers, query } = sampleClient(policy, 'sample');
  const request = {
    method,
    target: target + query,
    rawHeaders: headers.flat(),
    socket: { remoteAddress: FROM },
  };
  for (let i = 0; i < policy.capacity; i++) {
    const asked = rehearsal.ask(request);
    if (asked.kind !== 'allow') return false;
    if (policy.algorithm !== 'concurrency') rehearsal.ended(asked);
  }
  const last = rehearsal.ask(request);
  return last.kind === 'deny' && last.violated.some((verdict) => verdict.policy.bucketId === policy.bucketId);
}
