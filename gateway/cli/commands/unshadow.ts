/** `unshadow`: lets a policy deny again, before its shadow mode expires. */

import { policyCommand } from '#gateway/cli/command/admin-command.ts';
import { EXIT } from '#shared/cli/exit.ts';

export const addUnshadow = policyCommand({
  name: 'unshadow',
  describe: 'Lets a policy deny again',
  example: ['$0 unshadow login', 'Applies at once, and within a second in other gateways'],
  tell: ({ policies, changed }) =>
    changed
      ? `Denies again: ${policies.join(', ')}`
      : 'No operator had put it in shadow mode; the file decides.',
  // If there was no shadow mode, exit with an error: the operator most likely meant another policy.
  exitCode: ({ changed }) => (changed ? EXIT.ok : EXIT.no),
});
