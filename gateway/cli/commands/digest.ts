/** `digest`: prints the digest of a client in policy files and logs. */

import { subjectCommand } from '#gateway/cli/command/admin-command.ts';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';

export const addDigest = subjectCommand<Inspected>({
  name: 'digest',
  path: 'inspect',
  describe: 'Which digest names this client in policy files and logs?',
  example: ['$0 digest --key my-api-key', 'For overrides, plans, allow and deny'],
  print: ({ identity }, terminal) => terminal.line(identity),
});
