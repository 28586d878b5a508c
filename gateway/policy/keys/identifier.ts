import { partsOf, readsBody } from '#gateway/identity/identifier.ts';
import { isConditional } from '#gateway/policy/condition.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import { BODY_FIELD } from './identifier-keys.ts';
import { policyKey } from './key.ts';
import { only } from './schema-parts.ts';
import { easilyUsedUp } from './shared-limit.ts';

const NAMES = {
  type: 'array',
  items: { type: 'string' },
  minItems: 2,
  maxItems: 4,
  uniqueItems: true,
  description: 'a list of 2 to 4 names of entries under identifiers',
} as const;

export const identifier = policyKey({
  schema: {
    anyOf: [{ type: 'string' }, NAMES, BODY_FIELD, only('first', NAMES)],
    description:
      'the name of an entry under identifiers, path.NAME for a parameter of the route, { body: FIELD }, everyone, host with hosts, a list of 2 to 4 names, or { first: [NAMES] }',
  },
  more: 'See [Who is counted](policies.md#who-is-counted). The values of a list together identify one client. With `first`, it is the [first](#the-first-of-several-identifiers) that a request presents',
  counted: ({ identifier }) => identifier.name,
  // An address is the same identity under every identifier.
  restarts: (before, after) => before.identifier.kind !== 'address' || after.identifier.kind !== 'address',
  /**
   * Warns of a limit that one client can use up, and of a field that clients can invent. Each value has its own counter,
   * so another policy must bound how many values one client sends.
   */
  warn(policy, { policies }) {
    const { name, identifier, route } = policy;
    if (!readsBody(identifier)) return easilyUsedUp(policy, { policies });
    const counts = (other: LoadedPolicy): boolean =>
      other.identifier.kind === 'address' &&
      other.mode === 'enforce' &&
      other.unless === null &&
      (other.distinct === null || partsOf(identifier).some(({ name }) => name === other.distinct?.name)) &&
      !isConditional(other) &&
      coveredBy(route, [other.route]).length > 0;
    if (policies.some(counts)) return null;
    return [
      `${name} counts a field that clients can invent, and no policy counts their addresses on this route`,
      'add a policy by address, or one client can try any number of values',
    ];
  },
});
