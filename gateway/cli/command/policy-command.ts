/** Commands that change one policy of a running gateway until further notice: they ask the admin API. */
import type { Options } from 'yargs';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { ADMIN_OPTIONS, askAdmin } from './admin-client.ts';
import type { AddCommand } from './command.ts';

export interface Shadowed {
  /** The policy, and those that share its counter. */
  readonly policies: readonly string[];
  /** ISO 8601; null: they deny. */
  readonly shadowEndsAt: string | null;
  readonly changed: boolean;
}

export interface PolicyCommand {
  /** Its name, and the last part of its path in the admin API. */
  readonly name: string;
  readonly describe: string;
  readonly example: readonly [command: string, says: string];
  /** Beside those of every such command. */
  readonly options?: Readonly<Record<string, Options>>;
  /** What of them is asked. @throws CommandError that says how to write them */
  readonly more?: (options: Readonly<Record<string, unknown>>) => object;
  /** A line for people. */
  readonly tell: (answer: Shadowed) => string;
  /** Fine unless it says otherwise. */
  readonly exitCode?: (answer: Shadowed) => ExitCode;
}

export function policyCommand(command: PolicyCommand): AddCommand {
  const { name, describe, example, options = {}, more, tell, exitCode } = command;
  return (program, { run, terminal, env }) =>
    program.command(
      `${name} <policy>`,
      describe,
      (builder) =>
        builder
          .positional('policy', {
            type: 'string',
            demandOption: true,
            describe: 'Its name in the policy file',
          })
          // Of any name: told to the compiler, that would hide the names that are known.
          .options(options as Readonly<Record<never, Options>>)
          .options(ADMIN_OPTIONS)
          .example(...example),
      (given) =>
        run(async () => {
          const { policy, gateway, token = env.GATEWAY_ADMIN_TOKEN, json } = given;
          const body = { policy, ...more?.({ ...given }) };
          const answer = (await askAdmin({ gateway, token }, 'POST', `/api/${name}`, body)) as Shadowed;
          if (json) terminal.json(answer);
          else terminal.line(tell(answer));
          return exitCode?.(answer) ?? EXIT.ok;
        }),
    );
}
