/** Returns one field of each row. */
export function column<Name extends string, Row extends Readonly<Record<Name, unknown>>>(
  rows: readonly Row[],
  name: Name,
): Row[Name][] {
  return rows.map((row) => row[name]);
}
