/** Lists what changes in one policy, and for which clients. Pure. */
import { type CredentialSource, type Identifier, partsOf } from '#gateway/identity/identifier.ts';
import { spanText } from './allowance.ts';
import { type Algorithm, banText, type Cost, type Count, type Policy } from './policy.ts';

type ChangeKind =
  | 'policy-added'
  | 'policy-removed'
  | 'policy-renamed'
  | 'route'
  | 'limit'
  | 'overrides'
  | 'rollout'
  | 'plan'
  | 'plans'
  | 'page'
  | 'ignore-case'
  | 'list-added'
  | 'list-removed'
  | 'algorithm'
  | 'burst'
  | 'cost'
  | 'count'
  | 'window'
  | 'identifier'
  | 'bucket'
  | 'mode'
  | 'required'
  | 'on-store-failure'
  | 'headers'
  | 'ban'
  | 'protect'
  | 'priority'
  | 'exclude-added'
  | 'exclude-removed';

export interface Change {
  readonly kind: ChangeKind;
  /** Name of the policy; null if the change concerns the whole file. */
  readonly policy: string | null;
  /** Value in the old file; null if it has none. */
  readonly from: string | number | null;
  readonly to: string | number | null;
  readonly effect: string;
}

const ALGORITHM_EFFECTS: Readonly<Record<Algorithm, string>> = {
  'fixed-window': 'the whole limit comes back at the end of each window',
  'sliding-window': 'the limit comes back gradually, so the edge of a window does not allow a second one',
  'token-bucket': 'the limit comes back steadily',
  concurrency: 'requests in flight at once are limited',
  'calendar-window':
    'the whole limit comes back at midnight, when a day, week or month of the calendar begins',
};

const COUNT_EFFECTS: Readonly<Record<Count, string>> = {
  request: 'every request counts',
  failure: 'only requests that the application answers with 4xx or 5xx count',
  success: 'only requests that the application answers with less than 400 count',
};

export const AFRESH = 'its counters start from zero';

export function changesOf(old: Policy, now: Policy): Change[] {
  const changes: Change[] = [];
  const add = (kind: ChangeKind, from: string | number, to: string | number, effect: string): void => {
    if (from !== to) changes.push({ kind, policy: now.name, from, to, effect });
  };
  const afresh = isSameCounter(old, now) ? '' : `; ${AFRESH}`;
  add(
    'route',
    old.route.text,
    now.route.text,
    `requests to ${old.route.text} are no longer counted by it, those to ${now.route.text} are`,
  );
  // Requests per window and requests in flight cannot be compared; the change of algorithm is reported instead.
  if (isInFlight(old) === isInFlight(now)) add('limit', old.limit, now.limit, limitEffect(old, now));
  add(
    'rollout',
    `${old.rollout?.percent ?? 100}%`,
    `${now.rollout?.percent ?? 100}%`,
    (now.rollout?.percent ?? 100) > (old.rollout?.percent ?? 100)
      ? 'the policy counts more clients'
      : 'the policy counts fewer clients',
  );
  add(
    'overrides',
    overridesText(old),
    overridesText(now),
    'clients that the old or new overrides name have another limit; requests counted so far stay counted',
  );
  add(
    'ban',
    bansText(old),
    bansText(now),
    'other clients are banned, or clients are banned for another time',
  );
  add(
    'priority',
    old.priority ?? 'normal',
    now.priority ?? 'normal',
    'its requests wait and are refused in another order while the application is overloaded',
  );
  add('algorithm', old.algorithm, now.algorithm, `${ALGORITHM_EFFECTS[now.algorithm]}${afresh}`);
  const followLimit = old.capacity === old.limit && now.capacity === now.limit;
  if (now.algorithm === 'token-bucket' && !followLimit)
    add(
      'burst',
      old.capacity,
      now.capacity,
      `clients can use ${now.capacity} at once instead of ${old.capacity}`,
    );
  add('cost', costText(old.cost), costText(now.cost), 'each request costs a different amount');
  add('count', old.count, now.count, COUNT_EFFECTS[now.count]);
  if (!isInFlight(old) && !isInFlight(now))
    add('window', windowText(old), windowText(now), windowEffect(old, now, afresh));
  add(
    'identifier',
    identifierText(old.identifier),
    identifierText(now.identifier),
    `clients are identified differently${afresh}`,
  );
  add(
    'required',
    onOff(isRequired(old)),
    onOff(isRequired(now)),
    isRequired(now)
      ? 'requests without a field of the body that the gateway can read get 400'
      : 'requests without a field of the body that the gateway can read pass uncounted',
  );
  add('bucket', old.bucket, now.bucket, `it shares its counter with other policies${afresh}`);
  add(
    'mode',
    old.mode,
    now.mode,
    now.mode === 'shadow' ? 'it no longer denies, it only reports' : 'it begins to deny',
  );
  add(
    'on-store-failure',
    old.onStoreFailure,
    now.onStoreFailure,
    'matters only while the store is unavailable',
  );
  add(
    'headers',
    onOff(old.headers),
    onOff(now.headers),
    now.headers ? 'replies have its limit headers' : 'replies no longer have its limit headers',
  );
  return changes;
}

function isRequired({ identifier }: Policy): boolean {
  return partsOf(identifier).some((part) => part.kind === 'body' && part.isRequired);
}

function isInFlight({ algorithm }: Policy): boolean {
  return algorithm === 'concurrency';
}

function limitEffect(old: Policy, now: Policy): string {
  if (now.mode === 'shadow') return 'it denies nobody before or after: it is in shadow mode';
  if (isInFlight(now))
    return now.limit > old.limit
      ? `clients may have ${now.limit} requests in flight at once instead of ${old.limit}`
      : `clients that have more than ${now.limit} requests in flight at once are denied`;
  return now.limit > old.limit
    ? `clients get ${now.limit - old.limit} more in each window; clients that are denied now pass at once`
    : `clients that make more than ${now.limit} requests in ${spanText(now)} are denied; requests counted so far in a window stay counted`;
}

function windowText({ calendar, windowSeconds }: Policy): string {
  return calendar === null ? `${windowSeconds}s` : `${calendar.unit} (${calendar.timezone})`;
}

function windowEffect(old: Policy, now: Policy, afresh: string): string {
  return old.calendar !== null && old.calendar.unit === now.calendar?.unit
    ? `what was counted so far counts until midnight in ${now.calendar.timezone} or in ${old.calendar.timezone}, whichever ends the ${now.calendar.unit} earlier`
    : `${rateEffect(old, now)}${afresh}`;
}

function rateEffect(old: Policy, now: Policy): string {
  const before = (old.limit / old.windowSeconds) * 60;
  const after = (now.limit / now.windowSeconds) * 60;
  return `${rounded(before)} requests a minute on average become ${rounded(after)}`;
}

function rounded(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 2 });
}

export function policyAdded(policy: Policy): Change {
  const { name, route, limit, mode, identifier } = policy;
  const beyond = isInFlight(policy) ? `${limit} in flight at once` : `${limit} in ${spanText(policy)}`;
  const effect =
    mode === 'shadow'
      ? `requests to ${route.text} are counted by ${identifier.name} and never denied`
      : `requests to ${route.text} are denied beyond ${beyond} for each ${identifier.name}`;
  return { kind: 'policy-added', policy: name, from: null, to: route.text, effect };
}

export function policyRemoved({ name, route }: Policy): Change {
  return {
    kind: 'policy-removed',
    policy: name,
    from: route.text,
    to: null,
    effect: `requests to ${route.text} are no longer limited by it`,
  };
}

export function isSameButName(a: Policy, b: Policy): boolean {
  return (
    a.route.text === b.route.text &&
    a.limit === b.limit &&
    a.windowMs === b.windowMs &&
    a.algorithm === b.algorithm &&
    a.capacity === b.capacity &&
    a.count === b.count &&
    costText(a.cost) === costText(b.cost) &&
    a.mode === b.mode &&
    identifierText(a.identifier) === identifierText(b.identifier)
  );
}

/**
 * Whether both have the same key in the store: bucket, window, algorithm and identifier. If one of them changes, the
 * policy counts from zero.
 */
function isSameCounter(a: Policy, b: Policy): boolean {
  return (
    a.bucket === b.bucket &&
    a.windowMs === b.windowMs &&
    a.algorithm === b.algorithm &&
    identifierText(a.identifier) === identifierText(b.identifier)
  );
}

function identifierText(identifier: Identifier): string {
  if (identifier.kind === 'address') return `${identifier.name} (address, /${identifier.ipv6Prefix} of IPv6)`;
  if (identifier.kind === 'everyone') return 'everyone together';
  if (identifier.kind === 'path') return `${identifier.name} ({${identifier.param}} of the path)`;
  if (identifier.kind === 'body') return `${identifier.name} (${identifier.field} of the body)`;
  if (identifier.kind === 'combined') return identifier.parts.map(identifierText).join(' and ');
  if (identifier.kind === 'token') {
    const tokens = identifier.sources.map(
      ({ carrier, claim, issuer, audience }) =>
        `${claim} of the token in ${sourceText(carrier)}${issuer === null ? '' : `, issued by ${issuer}`}${audience === null ? '' : `, for ${audience.join(' or ')}`}`,
    );
    return `${identifier.name} (${tokens.join(', ')})`;
  }
  return `${identifier.name} (${identifier.sources.map(sourceText).join(', ')})`;
}

function sourceText(source: CredentialSource): string {
  switch (source.kind) {
    case 'header':
      return `header ${source.header}`;
    case 'bearer':
      return `bearer ${source.prefix}`;
    case 'cookie':
      return `cookie ${source.cookie}`;
    case 'query':
      return `query ${source.parameter}`;
    default:
      return source satisfies never;
  }
}

function bansText({ ban }: Policy): string {
  return ban === null ? 'never' : banText(ban);
}

function overridesText({ overrides }: Policy): string {
  if (overrides === null) return 'none';
  return `${overrides.size} ${overrides.size === 1 ? 'override' : 'overrides'}, version ${overrides.version}`;
}

function costText(cost: Cost): string {
  switch (cost.kind) {
    case 'units':
      return String(cost.units);
    case 'header':
      return `header ${cost.header}`;
    case 'reply-header':
      return `header ${cost.header} of the reply, ${cost.reserve} reserved`;
    case 'body-bytes':
      return `body-bytes, ${cost.unannounced ?? 'the whole limit'} where the length is unknown`;
    default:
      return cost satisfies never;
  }
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}
