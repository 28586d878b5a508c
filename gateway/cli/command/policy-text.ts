/** The policy file that a command is given. */
import { readFileSync } from 'node:fs';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** @throws CommandError exit 3 */
export function readPolicyText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code}); name a policy file that is there`,
      EXIT.unreachable,
    );
  }
}
