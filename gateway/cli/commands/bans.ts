/** `bans`: lists banned clients, who banned them, and until when. */

import { ADMIN_OPTIONS, type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { requireWhole } from '#gateway/cli/command/arguments.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import type { ShownBans } from '#gateway/operate/admin/client-routes.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';

const COUNT_MAX = 1000;

interface BansArguments extends AdminAccess, GlobalOptions {
  readonly count: number;
}

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
    (options) => context.run(() => bans(options, context)),
  );

async function bans(options: BansArguments, { terminal, env }: CommandContext): Promise<ExitCode> {
  const { count } = options;
  requireWhole('--count', count, 1, COUNT_MAX);
  const answer = (await askAdmin(accessOf(options, env), 'GET', `/api/bans?count=${count}`)) as ShownBans;
  if (options.json) {
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
}
