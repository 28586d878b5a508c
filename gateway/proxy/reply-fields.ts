/** Reads the header fields of an upstream's reply. */
import { valuesOf } from '#gateway/http/header-fields.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import { BadReplyError } from './exchange.ts';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const ODD_FIELD = /^([\x21-\x39\x3b-\x7e\x80-\xff]+)[\t ]*:([^\0\r\n]*)$/;
const CONTROL = /[^\t\x20-\x7e\x80-\xff]/;
const CONTROLS = new RegExp(CONTROL, 'g');
/** These say where the reply ends, so every sign in them matters. */
const FRAMING = /^(?:content-length|transfer-encoding|connection|upgrade)$/i;
const LENGTH = 'content-length';
const DIGITS = /^\d{1,15}$/;
const UPGRADE = /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/;

export const badField = (): BadReplyError =>
  new BadReplyError("a header field of the upstream's reply cannot be read");

/**
 * Repairs a line that violates the grammar. RFC 9112 5.1 asks proxies to remove blanks before the colon.
 *
 * @returns null if clients cannot read a field with this name
 */
export function repairedField(line: string): string | null {
  const [, name = '', value] = ODD_FIELD.exec(line) ?? [];
  if (value === undefined || (FRAMING.test(name) && CONTROL.test(value))) throw badField();
  return TOKEN.test(name) ? `${name}:${value.replace(CONTROLS, ' ')}` : null;
}

/**
 * Joins lengths that are equal (RFC 9110 8.6): the first field stays, with one number.
 *
 * @param headers alternating names and values
 */
export function joinLengths(headers: string[]): number {
  const [length = '', ...others] = valuesOf(headers, LENGTH)
    .join()
    .split(',')
    .map((value) => value.replace(/^[\t ]+|[\t ]+$/g, ''));
  if (!DIGITS.test(length) || others.some((other) => other !== length))
    throw new BadReplyError("the length of the upstream's reply is not one number");
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === LENGTH);
  const name = headers[at] ?? '';
  dropNominated(headers, new Set([LENGTH]));
  headers.splice(at, 0, name, length);
  return Number(length);
}

/** Returns the protocols in the value of an Upgrade field (RFC 9110 7.8), in lower case. */
export function protocolsIn(upgrade: string): string[] {
  return upgrade.split(',').map((protocol) => protocol.trim().toLowerCase());
}

/**
 * Whether a 101 names one of the offered protocols, and no other.
 *
 * @param offered value of the Upgrade field in the request; null if it has none
 */
export function switchesTo(offered: string | null, fields: readonly string[]): boolean {
  const joined = (name: string): string => valuesOf(fields, name).join(', ').toLowerCase();
  return (
    offered !== null && protocolsIn(offered).includes(joined('upgrade')) && UPGRADE.test(joined('connection'))
  );
}
