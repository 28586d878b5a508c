import { partsOf, readsBody } from '#gateway/identity/identifier.ts';
import { SOURCES } from './identifier-sources.ts';
import { policyKey } from './key.ts';
import { areCounted, easilyUsedUp } from './other-limits.ts';
import { only } from './schema-parts.ts';

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
    anyOf: [{ type: 'string' }, NAMES, SOURCES.body, only('first', NAMES)],
    description:
      'the name of an entry under identifiers, path.NAME for a parameter of the route, { body: FIELD }, everyone, host with hosts, a list of 2 to 4 names, or { first: [NAMES] }',
  },
  see: 'policies.md#who-is-counted',
  counted: ({ identifier }) => identifier.name,
  /**
   * Warns of a limit that one client can use up, and of a field that clients can invent. Each value has its own counter,
   * so another policy must bound how many values one client sends.
   */
  warn(policy, { policies }) {
    const { name, identifier } = policy;
    if (!readsBody(identifier)) return easilyUsedUp(policy, { policies });
    const counting = policies.filter(
      ({ identifier: { kind }, distinct }) =>
        kind === 'address' &&
        (distinct === null || partsOf(identifier).some(({ name }) => name === distinct.name)),
    );
    if (areCounted(policy, counting)) return null;
    return [
      `${name} counts a field that clients can invent, and no policy counts their addresses on this route`,
      'add a policy by address, or one client can try any number of values',
    ];
  },
});
