/** The key `identifiers`, and the keys of an identifier. */
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { carriersOf } from '#gateway/identity/credential.ts';
import { type Identifier, partsOf } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Report } from '#gateway/policy/problems.ts';
import { fileKey, propertiesOf } from './key.ts';
import { fieldName, fileName, only, whole } from './schema-parts.ts';

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

export const QUERY_PARAMETER = { type: 'string', pattern: '^[A-Za-z0-9._~[\\]-]+$' } as const;

const credentialSource = {
  anyOf: [
    only('header', fieldName),
    only('bearer', { type: 'string', pattern: '^[!-~]*$' }),
    only('cookie', fieldName),
    only('query', QUERY_PARAMETER),
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
    only('network', fileName),
  ],
  description:
    'write { header: NAME }, { bearer: PREFIX }, { cookie: NAME }, { query: NAME }, { path: PARAMETER }, { body: FIELD }, { network: FILE } or { jwt: { bearer: true, claim: sub, jwks: FILE } }',
} as const;

export const IDENTIFIER_KEYS = {
  source: fileKey({
    schema: {
      anyOf: [
        { type: 'string', const: 'client-address' },
        { type: 'array', items: credentialSource, minItems: 1, maxItems: 8 },
      ],
      description: 'write client-address, or a list such as [ { header: x-api-key }, { bearer: fbk_ } ]',
    },
    more: '1 to 8 places where a client presents its credential: `{ header: NAME }`, `{ bearer: PREFIX }`, `{ cookie: NAME }`, `{ query: NAME }`; or a list of [`{ jwt: … }`](#signed-tokens); or `[{ path: PARAMETER }]`, a [part of the path](policies.md#who-is-counted); or `[{ body: FIELD }]`, a [field of the body](#fields-of-the-body); or `[{ network: FILE }]`, the [name of a network](#networks-with-names)',
  }),
  ipv4Prefix: fileKey({
    schema: whole(
      8,
      32,
      'bits of an IPv4 address that make one client, a whole number from 8 to 32; 24 counts the networks of providers',
    ),
    default: 32,
    more: 'Only with `client-address`',
  }),
  ipv6Prefix: fileKey({
    schema: whole(
      16,
      128,
      'bits of an IPv6 address that make one client, a whole number from 16 to 128; 64 is usual',
    ),
    default: 64,
    more: 'Only with `client-address`',
  }),
  ignoreCase: fileKey({
    schema: {
      type: 'boolean',
      description: 'true if the application finds keys without regard to case; false is the default',
    },
    default: false,
    more: 'Only with a header, bearer token, cookie or query parameter, see [Credentials](#credentials)',
  }),
} as const;

export const identifierSchema = {
  type: 'object',
  required: ['source'],
  properties: propertiesOf(IDENTIFIER_KEYS),
  additionalProperties: false,
  description: 'write { source: client-address } or { source: [ { header: x-api-key } ] }',
} as const;

export const identifiers = fileKey({
  schema: {
    type: 'object',
    patternProperties: { '^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$': identifierSchema },
    additionalProperties: false,
    description:
      'how clients are identified: names of lower-case letters, digits and dashes, each with a source',
    minProperties: 1,
    maxProperties: 16,
  },
  more: '1 to 16 entries. Names have at most 64 characters',
});

export function warnOfIdentifier(identifier: Identifier, { policies }: PolicySet, warn: Report): void {
  const { name } = identifier;
  if (identifier.kind === 'combined' || identifier.kind === 'first') return;
  const isUsed = policies.some(
    ({ identifier, unless, onlyFor, distinct }) =>
      unless?.name === name ||
      onlyFor?.keys.some((key) => key.name === name) === true ||
      distinct?.name === name ||
      partsOf(identifier).some((part) => part.name === name),
  );
  if (!isUsed) {
    warn(['identifiers', name], `no policy uses the identifier ${name}`, 'use it, or remove it', 'key');
    return;
  }
  const filter = new HeaderFilter();
  const useless = carriersOf(identifier).filter(
    // The filter stops Host only because the gateway writes the field itself, with the same value.
    (source) => source.kind === 'header' && source.header !== 'host' && filter.stops(source.header, true),
  );
  for (const source of useless) {
    if (source.kind !== 'header') continue;
    warn(
      ['identifiers', name],
      `the gateway removes the header ${source.header} of ${name}, so the application never sees this credential`,
      'use another header, or let it pass with GATEWAY_PASS_HEADERS',
      'key',
    );
  }
}
