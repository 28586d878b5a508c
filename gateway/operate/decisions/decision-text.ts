/** Describes a recorded refusal to people: the reason, who was counted, and how to change it. */
import { BOUND_NAMES, type BoundName, boundVariable } from '#gateway/bounds/bound-names.ts';
import { spanText } from '#gateway/policy/allowance.ts';
import type { DecisionRecord } from './decision-record.ts';
import { boundName, CLOSED_ROUTE, OPERATOR_BAN, PROTECT } from './refusal.ts';

export interface DecisionText {
  /** The refused request, and the time. */
  readonly what: string;
  readonly reasons: readonly string[];
  /** Name and value of a row in the description. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly advice: string;
}

/** @param address of the client; null if unknown */
export function textOf(record: DecisionRecord, address: string | null = null): DecisionText {
  const { at, method, path, policy, file, line, policyVersion, violated, endsAt } = record;
  const others = violated.filter((name) => name !== policy);
  return {
    what: `${method === '' ? 'A connection' : `${method} ${path}`} was refused at ${at}.`,
    reasons: [...reasonOf(record), ...(others.length === 0 ? [] : [`Also exhausted: ${others.join(', ')}.`])],
    facts: [
      ...(line === 0 ? [] : [['Line', `${file}:${line}, version ${policyVersion}`] as const]),
      ['Counted', `${record.identifier} ${record.identity}, address from ${record.addressFrom}`],
      ...(address === null ? [] : [['Address', address] as const]),
      ['Decided', `by ${decidedBy(record)} in ${record.replica}`],
      ['Retry at', endsAt],
    ],
    advice: adviceOf(record),
  };
}

function reasonOf(record: DecisionRecord): string[] {
  const { decision, policy, limit, used, windowSeconds, algorithm, cost = 1, isUnproven } = record;
  if (decision === 'unavailable')
    return [`The store was unavailable, and policy ${policy} has onStoreFailure: deny. The client got 503.`];
  if (decision === 'listed')
    return [`The list deny of the policy file names this ${policy === CLOSED_ROUTE ? 'route' : 'client'}.`];
  if (decision === 'banned')
    return [policy === OPERATOR_BAN ? 'An operator has banned this client.' : `This client has a ${policy}.`];
  if (decision === 'busy') return [busyReason(record)];
  const takes = cost === 1 ? '' : `; the request takes ${cost}`;
  const span =
    algorithm === 'concurrency'
      ? 'in flight at once'
      : algorithm === 'token-bucket'
        ? 'at once'
        : `in ${spanText({ algorithm, windowSeconds })}`;
  const were = algorithm === 'concurrency' ? 'were in flight' : 'were used';
  const counted = `policy ${policy} allows ${limit} ${span}, and ${used ?? limit} ${were}${takes}`;
  if (isUnproven) {
    return [
      `For unproven keys, ${counted} by the client's address.`,
      'A key is proven when the application has answered it with a 2xx within the last 30 days.',
    ];
  }
  if (used !== null && used > limit)
    return [
      `The limit was reached: ${counted}.`,
      'More than the limit was used: replies reported more units than were reserved, or the limit was lowered.',
    ];
  return [`The limit was reached: ${counted}.`];
}

function decidedBy({ decidedBy, fromMemory }: DecisionRecord): string {
  const by = decidedBy === 'store' ? 'the store' : 'the process alone';
  return fromMemory ? `${by}, remembered,` : by;
}

function busyReason(record: DecisionRecord): string {
  const { limit, used } = record;
  if (record.policy === PROTECT)
    return `The application replied slowly, so at most ${limit} requests were in progress there (protect), and ${used} were. This one had ${record.identifier} and waited too long.`;
  const whose = isShare(record)
    ? 'one client address'
    : isNetwork(record)
      ? 'the clients of one IPv6 network'
      : 'all clients together';
  return `A bound of the gateway was reached: ${whose} may hold ${limit} (${boundOf(record)}), and ${used} were held.`;
}

/** Tells whether the share of one client was used up. */
function isShare({ identifier }: DecisionRecord): boolean {
  return identifier === 'client address';
}

/** Tells whether the share of an IPv6 network, not of one client, was used up. */
function isNetwork({ identifier }: DecisionRecord): boolean {
  return identifier === 'IPv6 network';
}

function boundOf({ policy }: DecisionRecord): BoundName | null {
  return BOUND_NAMES.find((name) => policy === boundName(name)) ?? null;
}

function adviceOf(record: DecisionRecord): string {
  const { decision, policy, file, line, identity, isUnproven, algorithm } = record;
  if (decision === 'banned')
    return `To see the reason, run floodgate inspect ${identity}; to let it in again, floodgate unban ${identity}.`;
  if (policy === PROTECT)
    return `To let such requests go first, set priority: high in their policy in ${file}; to refuse none, set protect: shadow.`;
  if (decision === 'busy') {
    const bound = boundOf(record);
    const variable = bound === null ? 'the setting of this bound' : boundVariable(bound);
    if (isNetwork(record))
      return `A network has a quarter of ${variable}; GATEWAY_IPV6_NETWORK_PREFIX says how large a network is.`;
    return isShare(record)
      ? 'To let one address hold more, set a larger GATEWAY_CLIENT_SHARE; if the address is a proxy of yours, name it in GATEWAY_TRUSTED_PROXIES.'
      : `To let more be held at once, raise ${variable}.`;
  }
  if (decision === 'unavailable')
    return `To let requests pass while the store is away, set onStoreFailure: local in ${file}:${line}.`;
  if (decision === 'listed')
    return policy === CLOSED_ROUTE
      ? `To open the route, remove the entry in ${file}:${line}; it applies at once.`
      : `To let it in, remove the entry in ${file}:${line}; it applies at once.`;
  if (isUnproven) return 'Check that the client sends a key that the application accepts.';
  if (algorithm === 'concurrency')
    return `To let such clients have more requests in flight, raise concurrency in ${file}:${line}; it applies at once.`;
  return `To let such clients make more requests, raise limit in ${file}:${line}; it applies at once.`;
}
