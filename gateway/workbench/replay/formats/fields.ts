/** Reads fields of JSON logs. */
import { isAddress } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import type { LoggedSender } from './logged-request.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Values that proxies write in place of secrets. */
const REDACTED = new Set(['REDACTED', 'redacted']);

/** Parses a line's document, and skips text of a collector before it. @returns null if there is none */
export function documentIn(line: string): Fields | null {
  const begin = line.indexOf('{');
  if (begin < 0) return null;
  try {
    return fieldsOf(JSON.parse(line.slice(begin)));
  } catch {
    return null;
  }
}

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

/** Returns the first of these fields with a meaningful text; '' if there is none. */
export function textOf(fields: Fields, ...names: readonly string[]): string {
  for (const name of names) {
    const value = fields[name];
    if (typeof value === 'string' && value !== '' && value !== '-') return value;
  }
  return '';
}

/** Reads a whole number, also from a text; 0 if there is none. */
export function numberOf(fields: Fields, name: string): number {
  return numberIn(fields, name) ?? 0;
}

/** Reads a number that is not negative, also from a text; null if there is none. */
export function numberIn(fields: Fields, name: string): number | null {
  const value = typeof fields[name] === 'string' ? Number(fields[name]) : fields[name];
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : null;
}

/** Reads a duration in milliseconds; null if there is none. @param unitMs length of the field's unit */
export function durationIn(fields: Fields, name: string, unitMs: number): Millis | null {
  const value = numberIn(fields, name);
  return value === null ? null : value * unitMs;
}

/**
 * Returns the addresses of the peer and the client. The peer may be a socket without an address.
 *
 * @returns null if there is no address of the client
 */
export function addressesOf(peer: string, client: string): Pick<LoggedSender, 'peer' | 'client'> | null {
  if (!isAddress(client)) return null;
  return { peer: isAddress(peer) ? peer : client, client };
}

/** Returns a request target as in the request line; each code unit stands for one byte. */
export function targetOf(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, 'utf8').toString('latin1');
  }
  return text;
}

/** Sorts header fields into those with a value and those whose value is redacted. */
export class HeaderList {
  readonly headers: string[] = [];
  readonly concealed: string[] = [];

  add(name: string, value: unknown): void {
    if (typeof value !== 'string') return;
    if (REDACTED.has(value)) this.concealed.push(name.toLowerCase());
    else this.headers.push(name, value);
  }
}
