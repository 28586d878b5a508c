import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { PolicyFile } from './schema.ts';

type Row = PolicyFile['policies'][number];

/** Writes a policy as lines of an entry of `policies`, without keys that are null or have their default. */
export function policyLines(row: { readonly [K in keyof Row]: Row[K] | null }): string[] {
  return POLICY_ROWS.flatMap(([name, { default: usual }]) => {
    const value = row[name];
    return value === undefined || value === null || value === usual ? [] : [`${name}: ${valueText(value)}`];
  }).map((line, i) => (i === 0 ? `  - ${line}` : `    ${line}`));
}

/** Writes a value on one line. JSON is YAML too. */
export function valueText(value: unknown): string {
  return typeof value === 'string' && isPlain(value) ? value : JSON.stringify(value);
}

/** Whether YAML reads the text without quotes as the same text. */
function isPlain(text: string): boolean {
  return (
    /^(?:[A-Za-z/][\w /.,@-]*|[1-9][0-9]*[smhd])$/.test(text) &&
    !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  );
}
