/** `ban`: refuses all requests of one client for a while. */
import type { Inspected } from '#gateway/admin/inspect.ts';
import { readFor } from '../duration.ts';
import { subjectCommand } from '../subject-command.ts';

const DAYS_MAX = 30;

export const addBan = subjectCommand<Inspected>({
  name: 'ban',
  describe: 'Refuses all requests of a client for a while, with 429',
  example: ['$0 ban 192.0.2.7 --for 1h --reason "credential stuffing"', 'Within a second, in every process'],
  options: {
    for: { type: 'string', default: '1h', describe: 'How long: 30s, 15m, 1h or 7d; at most 30d' },
    reason: { type: 'string', describe: 'Kept beside the ban, for whoever asks later' },
  },
  more: (options) => ({ seconds: readFor(String(options.for), DAYS_MAX), reason: options.reason }),
});
