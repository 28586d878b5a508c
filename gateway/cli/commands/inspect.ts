/** `inspect`: shows how much a client has used, and whether it is banned. */

import { subjectCommand } from '#gateway/cli/command/admin-command.ts';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';

export const addInspect = subjectCommand<Inspected>({
  name: 'inspect',
  describe: 'What has this client used, and is it banned?',
  example: ['$0 inspect 192.0.2.7', 'Counters of an address'],
});
