/** Reads the header fields of an upstream's reply. */
import { BadReplyError } from './exchange.ts';

const FIELDS = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*(?:\r\n|$))*$/;
const UPGRADE = /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/;

/** @returns alternating names and values */
export function fieldsOf(text: string, from: number): string[] {
  const section = text.slice(from);
  if (!FIELDS.test(section)) throw new BadReplyError("a header field of the upstream's reply cannot be read");
  const fields: string[] = [];
  for (let at = 0; at < section.length; ) {
    const colon = section.indexOf(':', at);
    let end = section.indexOf('\r\n', colon);
    if (end < 0) end = section.length;
    let valueFrom = colon + 1;
    let valueTo = end;
    while (valueFrom < valueTo && isBlank(section.charCodeAt(valueFrom))) valueFrom++;
    while (valueTo > valueFrom && isBlank(section.charCodeAt(valueTo - 1))) valueTo--;
    fields.push(section.slice(at, colon), section.slice(valueFrom, valueTo));
    at = end + 2;
  }
  return fields;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/** Whether a 101 names this protocol, and no other (RFC 9110 7.8). */
export function switchesTo(protocol: string | null, fields: readonly string[]): boolean {
  const values = (wanted: string): string =>
    fields
      .filter((_, i) => i % 2 === 1 && fields[i - 1]?.toLowerCase() === wanted)
      .join(', ')
      .toLowerCase();
  return values('upgrade') === protocol?.toLowerCase() && UPGRADE.test(values('connection'));
}

/**
 * Returns the fields of a header section that is not complete or was refused.
 *
 * @param text may end anywhere in the section or behind it
 */
export function readableFields(text: string): string[] {
  const end = text.indexOf('\r\n\r\n');
  // Without the status line, and without the last line if it is not complete.
  const lines = text
    .slice(0, end < 0 ? Math.max(0, text.lastIndexOf('\r\n')) : end)
    .split('\r\n')
    .slice(1);
  return lines.filter((line) => FIELDS.test(line)).flatMap((line) => fieldsOf(line, 0));
}
