/** `shadow`: a policy counts and reports, and denies nothing, for a while. */
import { readFor } from '../duration.ts';
import { policyCommand } from '../policy-command.ts';

const DAYS_MAX = 7;

export const addShadow = policyCommand({
  name: 'shadow',
  describe: 'Lets a policy count and report, and deny nothing, for a while',
  example: ['$0 shadow login --for 1h', 'Within a second, in every process'],
  options: {
    for: { type: 'string', default: '1h', describe: 'How long: 30s, 15m, 1h or 7d; at most 7d' },
  },
  more: (options) => ({ seconds: readFor(String(options.for), DAYS_MAX) }),
  tell: ({ policies, shadowEndsAt }) => `Denies nothing until ${shadowEndsAt}: ${policies.join(', ')}`,
});
