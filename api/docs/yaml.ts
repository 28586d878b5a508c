/** A JSON value as YAML 1.2. Pure. The `yaml` package takes 200 ms for our document, in which no request is answered. */
import { isRecord } from '#api/schemas.ts';

/** Words that are plain in every reader of YAML, also in old ones that take `no` and `on` for booleans. */
const PLAIN_KEY = /^[A-Za-z_$][\w.$-]*$/;
const RESERVED = /^(y|n|yes|no|on|off|true|false|null)$/i;

export function toYaml(value: unknown): string {
  return `${blockOf(value, '').replace(/^\n/, '')}\n`;
}

/** @returns what stands behind a key or a dash: a scalar on its line, or a block below it */
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
  // Texts of JSON are texts of YAML in double quotes, and `[]` and `{}` are the same.
  return JSON.stringify(value);
}

function behind(block: string): string {
  return block.startsWith('\n') ? block : ` ${block}`;
}

function keyOf(key: string): string {
  return PLAIN_KEY.test(key) && !RESERVED.test(key) ? key : JSON.stringify(key);
}
