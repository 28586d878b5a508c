/** `start`: starts the gateway where there is no checkout and no image. */
import { existsSync } from 'node:fs';
import type { AddCommand } from '#gateway/cli/command/command.ts';
import { policyFileOf } from '#gateway/cli/command/policy-file.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { copyable } from '#shared/cli/program.ts';

export const addStart: AddCommand = (program, context) =>
  program.command(
    'start',
    'Starts the gateway, in the foreground',
    (command) =>
      command
        .option('upstream', { type: 'string', describe: 'Address to forward to; replaces GATEWAY_UPSTREAM' })
        .option('policies', { type: 'string', describe: 'The policy file; replaces GATEWAY_POLICIES' })
        .option('port', { type: 'string', describe: 'Public port; replaces GATEWAY_PORT' })
        .example(
          ...copyable('$0 start --upstream http://127.0.0.1:3000', 'With policies.yaml, on port 8080'),
        ),
    ({ upstream, policies, port }) =>
      context.run(async () => {
        const file = policies ?? policyFileOf(context.env);
        if (!existsSync(file))
          throw new CommandError(
            `there is no policy file ${file}; "floodgate init ${file}" writes one to begin with, --policies names another`,
            EXIT.unreachable,
          );
        await context.start({
          ...(policies === undefined ? {} : { GATEWAY_POLICIES: policies }),
          ...(upstream === undefined ? {} : { GATEWAY_UPSTREAM: upstream }),
          ...(port === undefined ? {} : { GATEWAY_PORT: port }),
        });
        return EXIT.ok;
      }),
  );
