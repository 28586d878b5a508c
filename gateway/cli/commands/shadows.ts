/** Commands that let a policy count and report for a while without denying, and end that before it expires. */
import { SHADOW_DAYS_MAX } from '#gateway/bans/shadows.ts';
import { forOption, policyCommand } from '#gateway/cli/command/admin-command.ts';

const IN_FORCE = 'Applies at once, and within a second in other gateways';

export const SHADOW = policyCommand({
  path: 'shadow',
  describe: 'Lets a policy count and report, and deny nothing, for a while',
  example: ['$0 shadow login --for 1h', IN_FORCE],
  options: { for: forOption(SHADOW_DAYS_MAX) },
  more: ({ for: seconds }) => ({ seconds }),
  tell: ({ policies, shadowEndsAt }) => `Denies nothing until ${shadowEndsAt}: ${policies.join(', ')}`,
});

export const UNSHADOW = policyCommand({
  path: 'unshadow',
  describe: 'Lets a policy deny again',
  example: ['$0 unshadow login', IN_FORCE],
  tell: ({ policies, changed }) =>
    changed
      ? `Denies again: ${policies.join(', ')}`
      : 'No operator had put it in shadow mode; the file decides.',
  mustChange: true,
});
