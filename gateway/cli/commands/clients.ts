/** Commands about clients: usage, digest, counters and bans. */
import { BAN_DAYS_MAX } from '#gateway/bans/bans.ts';
import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { forOption, subjectCommand } from '#gateway/cli/command/admin-command.ts';
import { ADMIN_OPTIONS, command } from '#gateway/cli/command/command.ts';
import type { InspectedClient, ShownBans } from '#gateway/operate/admin/client-routes.ts';
import { whole } from '#shared/cli/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

const IN_FORCE = 'Applies at once, and within a second in other gateways';

export const INSPECT = subjectCommand<InspectedClient>({
  path: 'inspect',
  describe: 'What has this client used, and is it banned?',
  example: ['$0 inspect 192.0.2.7', 'Counters of an address'],
});

export const DIGEST = subjectCommand<InspectedClient>({
  path: 'inspect',
  describe: 'Which digest names this client in policy files and logs?',
  example: ['$0 digest --key my-api-key', 'For overrides, plans, allow and deny'],
  print: ({ identity, kind }, terminal) => {
    if (kind === 'network' && identity.includes('/'))
      throw new CommandError(
        'no policy counts this network as one client; write it in policy files as it is',
        EXIT.no,
      );
    terminal.line(identity);
  },
});

export const RESET = subjectCommand<InspectedClient & { readonly cleared: number }>({
  path: 'reset',
  describe: 'Clears the counters of a client in all policies',
  example: ['$0 reset --key fbk_1', 'Clears what a key has used'],
  tell: ({ cleared }) => (cleared === 0 ? 'There was nothing to clear.' : `Buckets cleared: ${cleared}.`),
});

export const BAN = subjectCommand({
  path: 'ban',
  describe: 'Refuses all requests of a client for a while, with 429',
  example: ['$0 ban 192.0.2.7 --for 1h --reason "credential stuffing"', IN_FORCE],
  options: {
    for: forOption(BAN_DAYS_MAX),
    reason: { describe: 'Reason of the ban, for other operators' },
  },
  more: ({ for: seconds, reason }) => ({ seconds, reason }),
});

export const UNBAN = subjectCommand<InspectedClient & { readonly changed: boolean }>({
  path: 'unban',
  describe: 'Lets a banned client in again',
  example: ['$0 unban 192.0.2.7', IN_FORCE],
  tell: ({ changed }) => (changed ? 'The ban is lifted.' : 'There was no ban.'),
  mustChange: true,
});

export const BANS = command({
  describe: 'Lists banned clients, who banned them, and until when',
  options: {
    count: { parse: whole(1, 1000), default: '100', describe: 'Number of bans to list, at most 1000' },
    ...ADMIN_OPTIONS,
  },
  examples: [['$0 bans', 'Lists the newest bans first']],
  async run({ count, json, ...access }, { terminal, env }) {
    const answer = (await askAdmin(accessOf(access, env), 'GET', `/api/bans?count=${count}`)) as ShownBans;
    if (json) {
      terminal.json(answer);
      return EXIT.ok;
    }
    const { total, bans: listed, addresses } = answer;
    if (total === 0) terminal.line('Nobody is banned.');
    else
      terminal.table(
        ['client', 'by', 'until', 'reason'],
        listed.map(({ identity, policy, until, reason }) => [
          [identity, addresses[identity] ?? ''].join(' ').trim(),
          policy === null ? 'an operator' : `policy ${policy}`,
          until,
          reason,
        ]),
      );
    if (total > listed.length) terminal.line(`${total - listed.length} older bans are not listed.`);
    return EXIT.ok;
  },
});
