/** Computes how many units of a limit a request takes: at least one, whatever the request says. */
import type { CoverCounter } from '#gateway/policy/counter.ts';

/** The length of a body, as announced in the header section. */
export interface BodyLength {
  readonly hasBody: boolean;
  /** Length of the body. null if there is no body, or its length is not announced. */
  readonly contentLength: number | null;
}

const WHOLE_NUMBER = /^[0-9]+$/;

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
  let units = 1;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== header.length || name.toLowerCase() !== header) continue;
    const value = rawHeaders[i + 1]?.trim() ?? '';
    if (WHOLE_NUMBER.test(value)) units = Math.max(units, Number(value));
  }
  return units;
}
