/** A request as the command line describes it. */
import { isIP } from 'node:net';
import type { RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { readHeader, requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** @throws CommandError exit 2 that says how to write it */
export function readRequest(line: string, headers: readonly string[], from: string): RehearsedRequest {
  if (isIP(from) === 0)
    throw new CommandError(`--from ${from} is no address; write one such as 192.0.2.1`, EXIT.usage);
  try {
    return requestOf(line, headers, from);
  } catch (error) {
    throw new CommandError((error as Error).message, EXIT.usage);
  }
}

/** @throws CommandError exit 2 that says how to write one */
export function readHeaders(headers: readonly string[]): [name: string, value: string][] {
  try {
    return headers.map(readHeader);
  } catch (error) {
    throw new CommandError((error as Error).message, EXIT.usage);
  }
}
