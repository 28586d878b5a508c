/** The maximum does no harm, because request lines are limited too. */
export const route = (description: string) =>
  ({
    type: 'string',
    maxLength: 2000,
    description: `${description}, at most 2000 characters`,
  }) as const;

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

export const LIMIT_MAX = 1_000_000_000;

/** A plain file name: only files in the folder of the policy file can be named. */
export const fileName = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$' } as const;

/** Schema of a whole number of requests or units. */
export const units = { type: 'integer', minimum: 1, maximum: LIMIT_MAX } as const;
