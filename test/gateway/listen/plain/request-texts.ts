/** Random texts of requests: most plain, many almost. The same seed gives the same texts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Dice } from '#test/support/seed.ts';

type Part = 'methods' | 'targets' | 'fields';

const PARTS: Readonly<Record<Part | `odd ${Part}` | 'odd versions' | 'special', readonly string[]>> = parse(
  readFileSync(join(import.meta.dirname, 'request-texts.yaml'), 'utf8'),
);

const oneOf = (roll: Dice, list: readonly string[]): string => list[roll(list.length)] ?? '';

/** @param oddity one of this many parts is odd */
export function requestText(roll: Dice, oddity: number): string {
  const isOdd = (): boolean => roll(oddity) === 0;
  const part = (of: Part): string => oneOf(roll, PARTS[isOdd() ? (`odd ${of}` as const) : of]);
  const asked = `${part('methods')} ${part('targets')}`;
  const version = isOdd() ? oneOf(roll, PARTS['odd versions']) : 'HTTP/1.1';
  const fields = isOdd() ? [] : ['Host: a.example'];
  for (let n = roll(5); n > 0; n--) {
    const field = part('fields');
    fields.splice(roll(fields.length + 1), 0, field);
  }
  let body = '';
  if (roll(3) === 0) {
    body = oneOf(roll, [
      '',
      'hello',
      'x'.repeat(roll(40)),
      '5\r\nhello\r\n0\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: b\r\n\r\n',
    ]);
    if (!isOdd()) fields.splice(roll(fields.length + 1), 0, `Content-Length: ${body.length}`);
  }
  const lineEnd = isOdd() ? oneOf(roll, ['\n', '\r', '\r\r\n', '\r\n ']) : '\r\n';
  return `${isOdd() ? '\r\n' : ''}${asked} ${version}${lineEnd}${fields.map((field) => `${field}\r\n`).join('')}\r\n${body}`;
}

/** Changes a few bytes, or none. */
export function mutated(text: string, roll: Dice): string {
  let result = text;
  for (let n = roll(4) - 1; n > 0; n--) {
    const at = roll(result.length + 1);
    const length = roll(4);
    const special = oneOf(roll, PARTS.special);
    switch (roll(5)) {
      case 0:
        result = result.slice(0, at) + String.fromCharCode(roll(256)) + result.slice(at + 1);
        break;
      case 1:
        result = result.slice(0, at) + special + result.slice(at);
        break;
      case 2:
        result = result.slice(0, at) + result.slice(at + length);
        break;
      case 3:
        result = result.slice(0, at) + result.slice(at, at + 4 * length) + result.slice(at);
        break;
      default: {
        const code = result.charCodeAt(at);
        if (code >= 0)
          result = result.slice(0, at) + String.fromCharCode(code ^ (1 << roll(8))) + result.slice(at + 1);
      }
    }
  }
  return result;
}
