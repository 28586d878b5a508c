/** `ban`: refuses all requests of one client for a while. */

import { BAN_DAYS_MAX } from '#gateway/bans/bans.ts';
import { forOption, readFor, subjectCommand } from '#gateway/cli/command/admin-command.ts';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';

export const addBan = subjectCommand<Inspected>({
  name: 'ban',
  describe: 'Refuses all requests of a client for a while, with 429',
  example: [
    '$0 ban 192.0.2.7 --for 1h --reason "credential stuffing"',
    'Applies at once, and within a second in other gateways',
  ],
  options: {
    for: forOption(BAN_DAYS_MAX),
    reason: { type: 'string', describe: 'Reason of the ban, for other operators' },
  },
  more: (options) => ({ seconds: readFor(String(options.for), BAN_DAYS_MAX), reason: options.reason }),
});
