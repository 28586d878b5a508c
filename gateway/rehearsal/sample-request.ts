/** A request that a policy, and no tighter one, limits: made from its route, and confirmed by a rehearsal. */
import type { Policy, PolicySet } from '#gateway/policy/policy.ts';
import { Rehearsal } from './rehearsal.ts';

/** One identity is counted. */
const TABLE_SIZE = 1024;
const FROM = '192.0.2.1';

export interface SampleRequest {
  readonly method: string;
  readonly target: string;
}

/**
 * @param methods that may be used; those of the route, HEAD for GET
 * @param segment stands for every parameter of the route
 * @returns null when every such request is denied earlier by another policy, or counted by none
 */
export function sampleRequest(
  set: PolicySet,
  policy: Policy,
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

/** The header field that presents a credential to be counted; none where addresses are. */
export function credentialHeader(
  { identifier }: Policy,
  credential: string,
): [name: string, value: string][] {
  if (identifier.kind === 'address') return [];
  const [source] = identifier.sources;
  if (source === undefined) return [];
  return source.kind === 'header'
    ? [[source.header, credential]]
    : [['authorization', `Bearer ${source.prefix}${credential}`]];
}

function isLimitedBy(set: PolicySet, policy: Policy, { method, target }: SampleRequest): boolean {
  const rehearsal = new Rehearsal(set, {
    clock: () => 0,
    trust: { kind: 'none' },
    salt: '',
    countersMax: TABLE_SIZE,
    credentialsMax: TABLE_SIZE,
  });
  const request = {
    method,
    target,
    rawHeaders: credentialHeader(policy, 'sample').flat(),
    socket: { remoteAddress: FROM },
  };
  for (let i = 0; i < policy.capacity; i++) if (rehearsal.ask(request).kind !== 'allow') return false;
  const last = rehearsal.ask(request);
  return last.kind === 'deny' && last.violated.some((verdict) => verdict.policy.bucketId === policy.bucketId);
}
