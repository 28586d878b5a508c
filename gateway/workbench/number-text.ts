/** Formats numbers for people. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Formats a number with its noun, such as `1 request` and `2,000 requests`. */
export function counted(value: number, unit: string): string {
  return `${count(value)} ${unit}${value === 1 ? '' : 's'}`;
}
