import { EVERYONE } from '#gateway/identity/identifier.ts';
import { rolloutOf } from '#gateway/policy/rollout.ts';
import { policyKey } from './key.ts';

export const rollout = policyKey({
  schema: {
    anyOf: [
      { type: 'number', minimum: 0, maximum: 100 },
      { type: 'string', pattern: '^(?:100|[0-9]{1,2}(?:\\.[0-9]{1,3})?)%$' },
    ],
    description: 'a percentage of all clients, such as 10%: the others are not counted by this policy',
  },
  without: 'all',
  more: 'See [Trying a limit](policies.md#trying-a-limit-shadow-mode-and-rollout)',
  read(written, { bucket, identifier, isForGroup, report }) {
    if (written === undefined) return null;
    if (identifier === EVERYONE && !isForGroup)
      report([], 'a rollout chooses clients, and everyone is counted together', 'remove it', 'key');
    const percent = Number.parseFloat(String(written));
    // All policies of a row use the seed of the row, so their rollouts include the same clients.
    return percent === 100 ? null : rolloutOf(percent, bucket);
  },
  counted: ({ rollout }) => rollout?.percent,
});
