import { bytesOf, parseRequestLine } from '#gateway/policy/target.ts';
import type { RehearsedRequest } from './rehearsal.ts';

/**
 * Parses a request in the notation of the command line.
 *
 * @param line METHOD PATH
 * @param headers each `name: value`
 * @param from address of the client
 * @throws Error with the correct notation
 */
export function requestOf(line: string, headers: readonly string[], from: string): RehearsedRequest {
  const { method, target } = parseRequestLine(line);
  return { method, target, rawHeaders: headers.flatMap(readHeader), socket: { remoteAddress: from } };
}

/** @throws Error with the correct notation */
export function readHeader(text: string): [name: string, value: string] {
  const [, name, value] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([^\r\n]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Error(`"${text}" is no header; write 'name: value', such as -H 'x-api-key: fbk_1'`);
  return [name, bytesOf(value)];
}
