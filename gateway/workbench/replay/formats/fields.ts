/** Reads fields of JSON logs. */
import type { Millis } from '#shared/clock.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Proxies write these in place of secret values. */
const REDACTED = new Set(['REDACTED', 'redacted']);

/** A line's document; what a collector put before it is passed over. @returns null when there is none */
export function documentIn(text: string, start: number, end: number): Fields | null {
  const begin = text.charCodeAt(start) === 123 ? start : text.indexOf('{', start);
  if (begin < 0 || begin >= end) return null;
  try {
    return fieldsOf(JSON.parse(text.slice(begin, end)));
  } catch {
    return null;
  }
}

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

/** The first of these fields that is a text which says something; '' when none is. */
export function textOf(fields: Fields, ...names: readonly string[]): string {
  for (const name of names) {
    const value = fields[name];
    if (typeof value === 'string' && value !== '' && value !== '-') return value;
  }
  return '';
}

/** A whole number, also as text; 0 where there is none. */
export function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : 0;
}

/** A length of time, in milliseconds; null where there is none. @param unitMs what one of the field's units is */
export function durationIn(fields: Fields, name: string, unitMs: number): Millis | null {
  const value = typeof fields[name] === 'string' ? Number(fields[name]) : fields[name];
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value * unitMs : null;
}

/** A request target, one code unit a byte, as it stood in the request line. */
export function targetOf(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, 'utf8').toString('latin1');
  }
  return text;
}

/** Sorts header fields into those with a value and those whose value is concealed. */
export class HeaderList {
  readonly headers: string[] = [];
  readonly concealed: string[] = [];

  add(name: string, value: unknown): void {
    if (typeof value !== 'string') return;
    if (REDACTED.has(value)) this.concealed.push(name.toLowerCase());
    else this.headers.push(name, value);
  }
}
