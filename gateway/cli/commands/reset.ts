/** `reset`: clears the counters of a client in all policies */

import { subjectCommand } from '#gateway/cli/command/admin-command.ts';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';

export const addReset = subjectCommand<Inspected & { readonly cleared: number }>({
  name: 'reset',
  describe: 'Clears the counters of a client in all policies',
  example: ['$0 reset --key fbk_1', 'Clears what a key has used'],
  tell: ({ cleared }) => (cleared === 0 ? 'There was nothing to clear.' : `Buckets cleared: ${cleared}.`),
});
