/** Reads policy files, requests and headers from the arguments, and writes the files that they name. */
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** @throws CommandError exit 3; PolicyFileError with every mistake */
export function loadPolicyFile(file: string): PolicySet {
  return loadPolicies(readPolicyText(file), file);
}

/** @throws CommandError exit 3 */
export function readPolicyText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `${file} ${whyUnreadable(code, 'name an existing policy file')}`,
      EXIT.unreachable,
    );
  }
}

/** @param code of the error @param fix what to do about a file that does not exist */
export function whyUnreadable(code: string | undefined, fix: string): string {
  if (code === 'EISDIR') return 'is a folder; name a file in it';
  if (code === 'EACCES' || code === 'EPERM')
    return 'cannot be read: you have no permission; change that, or call the command as a user who has it';
  return `cannot be read (${code}); ${fix}`;
}

/** Writes a new file. @throws CommandError exit 2 if it exists, 3 */
export function writeText(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new CommandError(`${file} already exists; name another, or remove it`, EXIT.usage);
    const fix = 'name a file in a folder that you may write to';
    throw new CommandError(`${file} cannot be written (${code}); ${fix}`, EXIT.unreachable);
  }
}

/** @throws CommandError exit 2 */
export function readRequest(line: string, headers: readonly string[], from: string): RehearsedRequest {
  if (isIP(from) === 0)
    throw new CommandError(`--from ${from} is not an address; write one such as 192.0.2.1`, EXIT.usage);
  try {
    return requestOf(line, headers, from);
  } catch (error) {
    throw new CommandError((error as Error).message, EXIT.usage);
  }
}
