/** Computes how many units of a limit a request takes: at least one, whatever the request says. Reads units of replies too. */
import type { CoverCounter } from '#gateway/policy/counter.ts';

/** The length of a body, as announced in the header section. */
export interface BodyLength {
  readonly hasBody: boolean;
  /** Length of the body. null if there is no body, or its length is not announced. */
  readonly contentLength: number | null;
}

const WHOLE_NUMBER = /^[\t ]*[0-9]+[\t ]*$/;

/**
 * @param capacity the maximum that the client can use at once
 * @param rawHeaders alternating names and values
 */
export function unitsOf(
  { cost }: Pick<CoverCounter, 'cost'>,
  capacity: number,
  rawHeaders: readonly string[],
  { hasBody, contentLength }: BodyLength,
): number {
  switch (cost.kind) {
    case 'units':
      return cost.units;
    case 'header':
      return Math.min(headerUnits(cost.header, rawHeaders), capacity);
    case 'reply-header':
      return cost.reserve;
    case 'reply-bytes':
      return cost.reserve ?? Math.ceil(capacity / 100);
    case 'body-bytes':
      return hasBody ? Math.max(1, contentLength ?? cost.unannounced ?? capacity) : 1;
    default:
      return cost satisfies never;
  }
}

/** Returns the largest of several values. */
function headerUnits(header: string, rawHeaders: readonly string[]): number {
  return Math.max(1, ...wholeNumbers(header, rawHeaders).map((number) => number ?? 1));
}

/**
 * @param headers alternating names and values
 * @returns null if the header is missing, repeated, or not a whole number
 */
export function reportedUnits(header: string, headers: readonly string[]): number | null {
  const numbers = wholeNumbers(header, headers);
  return numbers.length === 1 ? (numbers[0] ?? null) : null;
}

/** Reads all values of a header; null for one that is no whole number. */
function wholeNumbers(header: string, headers: readonly string[]): (number | null)[] {
  const numbers: (number | null)[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== header.length || name.toLowerCase() !== header) continue;
    const value = headers[i + 1] ?? '';
    numbers.push(WHOLE_NUMBER.test(value) ? Number(value) : null);
  }
  return numbers;
}
