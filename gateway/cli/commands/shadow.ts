/** `shadow`: lets a policy count and report for a while without denying. */

import { SHADOW_DAYS_MAX } from '#gateway/bans/shadows.ts';
import { forOption, policyCommand, readFor } from '#gateway/cli/command/admin-command.ts';

export const addShadow = policyCommand({
  name: 'shadow',
  describe: 'Lets a policy count and report, and deny nothing, for a while',
  example: ['$0 shadow login --for 1h', 'Applies at once, and within a second in other gateways'],
  options: { for: forOption(SHADOW_DAYS_MAX) },
  more: (options) => ({ seconds: readFor(String(options.for), SHADOW_DAYS_MAX) }),
  tell: ({ policies, shadowEndsAt }) => `Denies nothing until ${shadowEndsAt}: ${policies.join(', ')}`,
});
