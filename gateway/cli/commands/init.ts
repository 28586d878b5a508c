/** `init`: writes a policy file to begin with. */
import { readFileSync } from 'node:fs';
import { writeText } from '#gateway/cli/command/arguments.ts';
import type { AddCommand } from '#gateway/cli/command/command.ts';
import { policyFileOf } from '#gateway/cli/command/policy-file.ts';
import { EXIT } from '#shared/cli/exit.ts';
import { copyable } from '#shared/cli/program.ts';

const EXAMPLES = ['json-api', 'login', 'plans', 'swarm', 'formbricks'] as const;

export const addInit: AddCommand = (program, context) =>
  program.command(
    'init [file]',
    'Writes a policy file to begin with',
    (command) =>
      command
        .positional('file', {
          type: 'string',
          default: policyFileOf(context.env),
          describe: 'File to write, which must not exist yet',
        })
        .option('from', {
          choices: EXAMPLES,
          default: 'json-api' as const,
          describe:
            'Purpose: a JSON API, a login, plans that clients buy, regulars before a swarm, Formbricks',
        })
        .example(...copyable('$0 init --from login', 'Writes policies.yaml with limits for a login')),
    ({ file, from, json }) =>
      context.run(() => {
        writeText(file, exampleText(from));
        if (json) context.terminal.json({ file, from });
        else
          context.terminal.line(
            `${file} is written. Change its routes and limits, then: floodgate check ${file}`,
          );
        return EXIT.ok;
      }),
  );

/** Removes the comment that names the schema for editors, because its path is valid only next to the examples. */
function exampleText(name: (typeof EXAMPLES)[number]): string {
  const file = new URL(`../../../examples/${name}.yaml`, import.meta.url);
  return readFileSync(file, 'utf8').replace(/^# yaml-language-server:.*\n(?:#\n)?/, '');
}
