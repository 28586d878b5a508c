/** Reads the fields of a header section, strictly (RFC 9112 5), and looks them up. */

/** Each line is a name, a colon and a value, without line folding. */
const FIELDS = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;

/** @param section lines that end with CR LF @returns alternating names and values; null if it violates the grammar */
export function fieldsIn(section: string): string[] | null {
  if (!FIELDS.test(section)) return null;
  const fields: string[] = [];
  for (let at = 0; at < section.length; ) {
    const colon = section.indexOf(':', at);
    const lineEnd = section.indexOf('\r\n', colon);
    let valueFrom = colon + 1;
    let valueTo = lineEnd;
    while (valueFrom < valueTo && isBlank(section.charCodeAt(valueFrom))) valueFrom++;
    while (valueTo > valueFrom && isBlank(section.charCodeAt(valueTo - 1))) valueTo--;
    fields.push(section.slice(at, colon), section.slice(valueFrom, valueTo));
    at = lineEnd + 2;
  }
  return fields;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/**
 * @param headers alternating names and values
 * @param name in lower case
 * @returns the values of all its fields
 */
export function valuesOf(headers: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const field = headers[i] ?? '';
    if (field.length === name.length && field.toLowerCase() === name) values.push(headers[i + 1] ?? '');
  }
  return values;
}
