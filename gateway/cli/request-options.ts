/** A request as the command line describes it. */
import { isIP } from 'node:net';
import { parseRequestLine } from '#gateway/policy/mismatch.ts';
import type { RehearsedRequest } from '#gateway/rehearsal/rehearsal.ts';
import { CommandError, EXIT } from './command.ts';

/** @throws CommandError exit 2 that says how to write it */
export function readRequest(line: string, headers: readonly string[], from: string): RehearsedRequest {
  if (isIP(from) === 0)
    throw new CommandError(`--from ${from} is no address; write one such as 192.0.2.1`, EXIT.usage);
  try {
    const { method, target } = parseRequestLine(line);
    return { method, target, rawHeaders: headers.flatMap(readHeader), socket: { remoteAddress: from } };
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

function readHeader(text: string): [name: string, value: string] {
  const [, name, value] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([^\r\n]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Error(`"${text}" is no header; write 'name: value', such as -H 'x-api-key: fbk_1'`);
  return [name, value];
}
