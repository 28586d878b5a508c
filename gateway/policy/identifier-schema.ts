import { fieldName, fileName, only } from './schema-parts.ts';

const PARAMETER = '^[A-Za-z][A-Za-z0-9_]*$';

export const BODY_FIELD = {
  type: 'object',
  required: ['body'],
  properties: {
    body: {
      type: 'string',
      pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$',
      description: 'the name of a field at the top of the body, such as email',
    },
    required: {
      type: 'boolean',
      description: 'true refuses requests of which the gateway cannot read the field',
    },
  },
  additionalProperties: false,
  description: 'write { body: FIELD }, such as { body: email }',
} as const;

const credentialSource = {
  anyOf: [
    only('header', fieldName),
    only('bearer', { type: 'string', pattern: '^[!-~]*$' }),
    only('cookie', fieldName),
    only('query', { type: 'string', pattern: '^[A-Za-z0-9._~[\\]-]+$' }),
    only('jwt', {
      type: 'object',
      required: ['claim', 'jwks'],
      properties: {
        bearer: { type: 'boolean', const: true },
        header: fieldName,
        cookie: fieldName,
        claim: { type: 'string', minLength: 1, maxLength: 200 },
        jwks: fileName,
        issuer: { type: 'string', minLength: 1, maxLength: 1000 },
        audience: {
          anyOf: [
            { type: 'string', minLength: 1, maxLength: 1000 },
            {
              type: 'array',
              items: { type: 'string', minLength: 1, maxLength: 1000 },
              minItems: 1,
              maxItems: 16,
            },
          ],
        },
      },
      additionalProperties: false,
    }),
    only('path', { type: 'string', pattern: PARAMETER }),
    BODY_FIELD,
  ],
  description:
    'write { header: NAME }, { bearer: PREFIX }, { cookie: NAME }, { query: NAME }, { path: PARAMETER }, { body: FIELD } or { jwt: { bearer: true, claim: sub, jwks: FILE } }',
} as const;

export const identifierSchema = {
  type: 'object',
  required: ['source'],
  properties: {
    source: {
      anyOf: [
        { type: 'string', const: 'client-address' },
        { type: 'array', items: credentialSource, minItems: 1, maxItems: 8 },
      ],
      description: 'write client-address, or a list such as [ { header: x-api-key }, { bearer: fbk_ } ]',
    },
    ipv6Prefix: {
      type: 'integer',
      minimum: 16,
      maximum: 128,
      description: 'bits of an IPv6 address that make one client, a whole number from 16 to 128; 64 is usual',
    },
    ignoreCase: {
      type: 'boolean',
      description: 'true if the application finds keys without regard to case; false is the default',
    },
  },
  additionalProperties: false,
  description: 'write { source: client-address } or { source: [ { header: x-api-key } ] }',
} as const;
