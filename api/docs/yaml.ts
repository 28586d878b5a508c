/** Writes a JSON value as YAML 1.2. Pure. The `yaml` package would block the process for 200 ms with our document. */
import { isRecord } from '#api/schemas.ts';

/** Keys that need no quotes in any reader of YAML. Old readers read `no` and `on` as booleans. */
const PLAIN_KEY = /^[A-Za-z_$][\w.$-]*$/;
const RESERVED = /^(y|n|yes|no|on|off|true|false|null)$/i;

export function toYaml(value: unknown): string {
  return `${blockOf(value, '').replace(/^\n/, '')}\n`;
}

/** @returns the text after a key or a dash: a scalar on the same line, or a block on the following lines */
function blockOf(value: unknown, indent: string): string {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((item) => `\n${indent}-${behind(blockOf(item, `${indent}  `))}`).join('');
  }
  if (isRecord(value) && Object.keys(value).length > 0) {
    return Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => `\n${indent}${keyOf(key)}:${behind(blockOf(member, `${indent}  `))}`)
      .join('');
  }
  // Strings of JSON are YAML strings in double quotes, and `[]` and `{}` are the same.
  return JSON.stringify(value);
}

function behind(block: string): string {
  return block.startsWith('\n') ? block : ` ${block}`;
}

function keyOf(key: string): string {
  return PLAIN_KEY.test(key) && !RESERVED.test(key) ? key : JSON.stringify(key);
}
