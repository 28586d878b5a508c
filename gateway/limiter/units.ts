/** How many units a request takes of a limit. Whatever it says, at least one. */
import type { CoverCounter } from '#gateway/policy/match.ts';

/** The length of a body, as its header section states it. */
export interface BodyLength {
  readonly hasBody: boolean;
  /** null when it is not announced, or when there is none. */
  readonly contentLength: number | null;
}

const WHOLE_NUMBER = /^[0-9]{1,15}$/;

/**
 * @param capacity the most that the client can use at once
 * @param rawHeaders names and values in turn
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
    case 'body-bytes':
      return hasBody ? Math.max(1, contentLength ?? cost.unannounced ?? capacity) : 1;
    default:
      return cost satisfies never;
  }
}

/** The largest of several values. */
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
