/** `init`: writes a policy file to begin with. */
import { readFileSync } from 'node:fs';
import { writeText } from '#gateway/cli/command/arguments.ts';
import { command, POLICY_FILE } from '#gateway/cli/command/command.ts';
import { EXIT } from '#shared/cli/exit.ts';

export const INIT = command({
  describe: 'Writes a policy file to begin with',
  options: {
    file: { ...POLICY_FILE, isPositional: true, describe: 'File to write, which must not exist yet' },
    from: {
      choices: ['json-api', 'login', 'plans', 'swarm', 'formbricks'],
      default: 'json-api',
      describe: 'Purpose: a JSON API, a login, plans that clients buy, regulars before a swarm, Formbricks',
    },
  },
  examples: [['$0 init --from login', 'Writes policies.yaml with limits for a login']],
  run({ file, from, json }, { terminal }) {
    writeText(file, exampleText(from));
    if (json) terminal.json({ file, from });
    else terminal.line(`${file} is written. Change its routes and limits, then: floodgate check ${file}`);
    return EXIT.ok;
  },
});

/** Removes the comment that names the schema for editors, because its path is valid only next to the examples. */
function exampleText(name: string): string {
  const file = new URL(`../../../examples/${name}.yaml`, import.meta.url);
  return readFileSync(file, 'utf8').replace(/^# yaml-language-server:.*\n(?:#\n)?/, '');
}
