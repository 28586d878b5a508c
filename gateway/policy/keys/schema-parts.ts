/** Parts of the schema that several keys have. */
import type { Path, Report } from '#gateway/policy/problems.ts';
import type { Seconds } from '#shared/clock.ts';

/** Schema of an object with these properties and no others. */
export const object = <
  const P extends Readonly<Record<string, object>>,
  const R extends readonly (keyof P & string)[],
>(
  required: R,
  properties: P,
  description: string,
) => ({ type: 'object', required, properties, additionalProperties: false, description }) as const;

export const text = (description: string) => ({ type: 'string', description }) as const;

export const flag = (description: string) => ({ type: 'boolean', description }) as const;

/** Schema of a text of one or more characters, at most `maxLength`. */
export const shortText = (maxLength: number, description: string) =>
  ({ type: 'string', minLength: 1, maxLength, description }) as const;

/** The maximum does no harm, because request lines are limited too. */
export const route = (description: string) => shortText(2000, `${description}, at most 2000 characters`);

/** Schema of an object with this property and no other. */
export const only = <const N extends string, const S extends object>(name: N, schema: S) =>
  ({
    type: 'object',
    required: [name],
    properties: { [name]: schema } as Readonly<Record<N, S>>,
    additionalProperties: false,
  }) as const;

/** A token (RFC 9110 5.6.2). */
const FIELD_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

export const fieldName = { type: 'string', pattern: FIELD_NAME } as const;

export const headerFields = (description: string) =>
  ({
    type: 'object',
    patternProperties: { [FIELD_NAME]: { type: ['string', 'number', 'boolean'] } },
    additionalProperties: false,
    maxProperties: 50,
    description,
  }) as const;

export const whole = (minimum: number, maximum: number, what: string) =>
  ({
    type: 'integer',
    minimum,
    maximum,
    description: `${what}, a whole number from ${minimum} to ${maximum}`,
  }) as const;

export const LIMIT_MAX = 1_000_000_000;

/** A plain file name: only files in the folder of the policy file can be named. */
export const fileName = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$' } as const;

/** Schema of a number of units. */
export const units = whole(1, LIMIT_MAX, 'units');

export const LIMIT = whole(1, LIMIT_MAX, 'requests per window');

export const DURATION = {
  type: 'string',
  pattern: '^[1-9][0-9]{0,5}(?:s|m|h|d)$',
  description: 'a length of time such as 30s, 1m, 1h or 1d',
} as const;

const UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** @param text a duration whose format has been checked, such as 30s, 1m, 12h or 7d */
export function secondsOf(text: string): Seconds {
  return Number(text.slice(0, -1)) * (UNITS_SECONDS[text.slice(-1)] ?? 0);
}

/** Reads a length of time, and reports one that is longer than `max`. */
export function secondsWithin(max: string, text: string, at: Path, report: Report): Seconds {
  const seconds = secondsOf(text);
  if (seconds > secondsOf(max)) report(at, `${text} is too long`, `write at most ${max}`);
  return seconds;
}

export const hostList = (description: string) =>
  some(
    { type: 'string' },
    100,
    `a list of 1 to 100 hosts such as shop.example.org or "*.example.org"${description}`,
  );

export const list = <const S extends object>(items: S, maxItems: number, description: string) =>
  ({ type: 'array', items, maxItems, description }) as const;

/** Schema of a list with at least one entry, because an empty one would never apply. */
export const some = <const S extends object>(items: S, maxItems: number, description: string) =>
  ({ type: 'array', items, minItems: 1, maxItems, description }) as const;
