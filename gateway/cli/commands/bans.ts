/** `bans`: lists banned clients, who banned them, and until when. */
import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, command } from '#gateway/cli/command/command.ts';
import type { ShownBans } from '#gateway/operate/admin/client-routes.ts';
import { whole } from '#shared/cli/command.ts';
import { EXIT } from '#shared/cli/exit.ts';

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
