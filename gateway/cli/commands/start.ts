/** `start`: starts the gateway where there is no checkout and no image. */
import { existsSync } from 'node:fs';
import { command, POLICY_FILE } from '#gateway/cli/command/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

export const START = command({
  describe: 'Starts the gateway, in the foreground',
  options: {
    upstream: { describe: 'Address to forward to; replaces GATEWAY_UPSTREAM' },
    policies: { describe: 'The policy file; replaces GATEWAY_POLICIES' },
    port: { describe: 'Public port; replaces GATEWAY_PORT' },
  },
  examples: [['$0 start --upstream http://127.0.0.1:3000', 'With policies.yaml, on port 8080']],
  async run({ upstream, policies, port }, { start, env }) {
    const file = policies ?? (env.GATEWAY_POLICIES || POLICY_FILE.default);
    if (!existsSync(file))
      throw new CommandError(
        `there is no policy file ${file}; "floodgate init ${file}" writes one to begin with, --policies names another`,
        EXIT.unreachable,
      );
    await start({
      // A file that nobody named gives way to that of the application, if it has one.
      ...(policies === undefined ? {} : { GATEWAY_POLICIES: policies }),
      ...(upstream === undefined ? {} : { GATEWAY_UPSTREAM: upstream }),
      ...(port === undefined ? {} : { GATEWAY_PORT: port }),
    });
    return EXIT.ok;
  },
});
