/** All keys of a policy, in the order in which messages and the documentation list them. */
import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { rolloutOf } from '#gateway/policy/policy.ts';
import { ban } from './ban.ts';
import { except, hosts, query, unless, userAgent } from './conditions.ts';
import { cost } from './cost.ts';
import { distinct } from './distinct.ts';
import { identifier } from './identifier-keys.ts';
import { type AnyPolicyKey, policyKey, propertiesOf } from './key.ts';
import { limits } from './limits.ts';
import { QUOTA_KEYS } from './quota-keys.ts';
import { newcomers } from './regulars.ts';
import { DURATION, object, route as routeText, secondsWithin } from './schema-parts.ts';

/** Names appear in header fields, metrics and store keys, so few characters are allowed. */
const nameText = (description: string) =>
  ({ type: 'string', pattern: '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$', description }) as const;

/** The explanation of a policy that denies nobody contains this. */
export const NEVER_DENIES = 'it never denies';

export const POLICY_KEYS = {
  name: policyKey({
    schema: nameText('a unique name: lower-case letters, digits, dots, dashes and underscores, at most 64'),
    more: 'Clients see it',
  }),
  route: policyKey({
    schema: routeText('METHODS PATH, such as POST /api/items or GET,PUT /api/items/*'),
    see: 'policies.md#routes',
  }),
  identifier,
  unless,
  hosts,
  userAgent,
  query,
  except,
  ...QUOTA_KEYS,
  limits,
  distinct,
  newcomers,
  cost,
  count: policyKey({
    schema: {
      enum: ['request', 'failure', 'success'],
      description:
        'request (the default), or failure or success to count only requests that the application answers with 4xx or 5xx, or with less',
    },
    default: 'request',
    see: '#counting-failures-or-successes',
    read: (count, { isInFlight }) => (isInFlight ? 'request' : count),
    counted: ({ count }) => count,
    explain: ({ count }) => (count === 'request' ? null : `only each ${count} counts`),
  }),
  bucket: policyKey({
    schema: nameText('the name of a counter that several policies share'),
    without: "the policy's name",
    see: '#shared-buckets',
    counted: ({ bucket }) => bucket,
    warn({ name, bucket, index }, { policies }) {
      if (bucket === name || policies.some((other) => other.bucket === bucket && other.index !== index))
        return null;
      return [
        `nothing shares the bucket ${bucket} with ${name}`,
        'give other policies the same bucket, or remove it',
      ];
    },
  }),
  rollout: policyKey({
    schema: {
      anyOf: [
        { type: 'number', minimum: 0, maximum: 100 },
        { type: 'string', pattern: '^(?:100|[0-9]{1,2}(?:\\.[0-9]{1,3})?)%$' },
      ],
      description: 'a percentage of all clients, such as 10%: the others are not counted by this policy',
    },
    without: 'all',
    see: 'policies.md#trying-a-limit-shadow-mode-and-rollout',
    read(written, { bucket, identifier, isForGroup, report }) {
      if (written === undefined) return null;
      if (identifier === EVERYONE && !isForGroup)
        report([], 'a rollout chooses clients, and everyone is counted together', 'remove it', 'key');
      const percent = Number.parseFloat(String(written));
      // All policies of a row use the seed of the row, so their rollouts include the same clients.
      return percent === 100 ? null : rolloutOf(percent, bucket);
    },
    counted: ({ rollout }) => rollout?.percent,
  }),
  mode: policyKey({
    schema: {
      enum: ['enforce', 'shadow', 'mark'],
      description:
        'enforce (the default), shadow to count and report without denying, or mark to tell the application instead of denying',
    },
    default: 'enforce',
    see: 'policies.md#trying-a-limit-shadow-mode-and-rollout',
    more: 'See also [marking](#telling-the-application-mode-mark)',
    read: (mode) => mode,
    counted: ({ mode }) => mode,
    explain: ({ mode }) =>
      mode === 'enforce' ? null : `${mode}: ${NEVER_DENIES}${mode === 'mark' ? ', and marks' : ''}`,
  }),
  onStoreFailure: policyKey({
    schema: {
      enum: ['allow', 'deny', 'local'],
      description: 'allow, deny, or local (the default: counters of this process, limit divided by replicas)',
    },
    default: 'local',
    see: '#when-the-store-is-gone',
    read: (rule) => rule,
    counted: ({ onStoreFailure }) => onStoreFailure,
  }),
  ban,
  priority: policyKey({
    schema: {
      enum: PRIORITIES,
      description:
        'with protect: who waits behind the others and is refused first, low, normal (the default) or high',
    },
    without: '`normal`',
    see: '#protecting-the-application',
    read: (priority) => priority ?? null,
    warn: ({ priority }, { protect }) =>
      priority === null || protect !== null
        ? null
        : ['priority has no effect without protect', 'write protect: on, or remove it', 'key'],
  }),
  headers: policyKey({
    schema: {
      enum: ['on', 'off', true, false],
      description: 'on (the default) or off: whether replies have limit headers for this policy',
    },
    default: 'on',
    more: 'If this policy denies a request, the 429 still names it',
    // Tools for YAML 1.1 write off as false.
    read: (headers) => headers !== 'off' && headers !== false,
    counted: ({ headers }) => headers,
  }),
  retryJitter: policyKey({
    schema: {
      ...DURATION,
      description:
        'a length of time from 1s to 1h: Retry-After of a 429 is longer by a random part of it, so that not all clients return at once',
    },
    without: 'none',
    see: '#returning-at-different-times-retryjitter',
    read: (written, { report }) => (written === undefined ? 0 : secondsWithin('1h', written, [], report)),
    counted: ({ retryJitter }) => retryJitter,
    explain: ({ retryJitter }) =>
      retryJitter === 0 ? null : `Retry-After has 0 to ${retryJitter} s more, at random`,
  }),
} as const;

type PolicyKeys = typeof POLICY_KEYS;

export const POLICY_ROWS: readonly (readonly [keyof PolicyKeys, AnyPolicyKey])[] = Object.entries(
  POLICY_KEYS,
) as [keyof PolicyKeys, AnyPolicyKey][];

export const policySchema = object(
  ['name', 'route', 'identifier'],
  propertiesOf(POLICY_KEYS),
  'a policy has name, route, identifier, limit and window',
);
