/** `unban`: lifts the ban of a client */

import { subjectCommand } from '#gateway/cli/command/admin-command.ts';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';
import { EXIT } from '#shared/cli/exit.ts';

export const addUnban = subjectCommand<Inspected & { readonly changed: boolean }>({
  name: 'unban',
  describe: 'Lets a banned client in again',
  example: ['$0 unban 192.0.2.7', 'Applies at once, and within a second in other gateways'],
  tell: ({ changed }) => (changed ? 'The ban is lifted.' : 'There was no ban.'),
  // If there was no ban, exit with an error: the operator most likely meant another client.
  exitCode: ({ changed }) => (changed ? EXIT.ok : EXIT.no),
});
