/** `bans`: lists banned clients, who banned them, and until when. */

import { ADMIN_OPTIONS, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { requireWhole } from '#gateway/cli/command/arguments.ts';
import type { AddCommand } from '#gateway/cli/command/command.ts';
import type { ShownBans } from '#gateway/operate/admin/client-routes.ts';
import { EXIT } from '#shared/cli/exit.ts';
import { copyable } from '#shared/cli/program.ts';

const COUNT_MAX = 1000;

export const addBans: AddCommand = (program, context) =>
  program.command(
    'bans',
    'Lists banned clients, who banned them, and until when',
    (command) =>
      command
        .option('count', {
          type: 'number',
          default: 100,
          describe: `Number of bans to list, at most ${COUNT_MAX}`,
        })
        .options(ADMIN_OPTIONS)
        .example(...copyable('$0 bans', 'Lists the newest bans first')),
    ({ count, json, ...access }) =>
      context.run(async () => {
        const { terminal, env } = context;
        requireWhole('--count', count, 1, COUNT_MAX);
        const answer = (await askAdmin(
          accessOf(access, env),
          'GET',
          `/api/bans?count=${count}`,
        )) as ShownBans;
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
      }),
  );
