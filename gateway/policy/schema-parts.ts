/** The maximum does no harm, because request lines are limited too. */
export const route = (description: string) =>
  ({
    type: 'string',
    maxLength: 2000,
    description: `${description}, at most 2000 characters`,
  }) as const;

/** A token (RFC 9110 5.6.2). */
export const FIELD_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

export const headerFields = (description: string) =>
  ({
    type: 'object',
    patternProperties: { [FIELD_NAME]: { type: ['string', 'number', 'boolean'] } },
    additionalProperties: false,
    maxProperties: 50,
    description,
  }) as const;

export const LIMIT_MAX = 1_000_000_000;

/** A plain file name: only files in the folder of the policy file can be named. */
export const REFERENCED_FILE = '^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$';
