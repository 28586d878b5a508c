/** The key `identifiers`, the keys of an identifier, and the key `identifier` of a policy. */
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { carriersOf } from '#gateway/identity/credential.ts';
import { partsOf, readsBody, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Report } from '#gateway/policy/problems.ts';
import { SOURCES } from './identifier-sources.ts';
import { fileKey, policyKey, propertiesOf } from './key.ts';
import { areCounted, easilyUsedUp } from './other-limits.ts';
import { flag, object, only, whole } from './schema-parts.ts';

const source = {
  anyOf: [
    SOURCES.header,
    SOURCES.bearer,
    SOURCES.cookie,
    SOURCES.query,
    SOURCES.jwt,
    SOURCES.path,
    SOURCES.body,
    SOURCES.network,
  ],
  description:
    'write { header: NAME }, { bearer: PREFIX }, { cookie: NAME }, { query: NAME }, { path: PARAMETER }, { body: FIELD }, { network: FILE } or { jwt: { bearer: true, claim: sub, jwks: FILE } }',
} as const;

export const IDENTIFIER_KEYS = {
  source: fileKey({
    schema: {
      anyOf: [
        { type: 'string', const: 'client-address' },
        { type: 'array', items: source, minItems: 1, maxItems: 8 },
      ],
      description: 'write client-address, or a list such as [ { header: x-api-key }, { bearer: fbk_ } ]',
    },
    more: '1 to 8 places where a client presents its credential: `{ header: NAME }`, `{ bearer: PREFIX }`, `{ cookie: NAME }`, `{ query: NAME }`; or a list of [`{ jwt: … }`](#signed-tokens); or `[{ path: PARAMETER }]`, a [part of the path](policies.md#who-is-counted); or `[{ body: FIELD }]`, a [field of the body](#fields-of-the-body); or `[{ network: FILE }]`, the [name of a network](#networks-with-names)',
  }),
  ipv4Prefix: fileKey({
    schema: whole(8, 32, 'bits of an IPv4 address that make one client'),
    default: 32,
    more: 'Only with `client-address`',
  }),
  ipv6Prefix: fileKey({
    schema: whole(16, 128, 'bits of an IPv6 address that make one client (usually 64)'),
    default: 64,
    more: 'Only with `client-address`',
  }),
  ignoreCase: fileKey({
    schema: flag('true if the application finds keys without regard to case; false is the default'),
    default: false,
    see: '#credentials',
    more: 'Only with a header, bearer token, cookie or query parameter',
  }),
} as const;

export const identifierSchema = object(
  ['source'],
  propertiesOf(IDENTIFIER_KEYS),
  'write { source: client-address } or { source: [ { header: x-api-key } ] }',
);

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

/** Warns of an identifier that no policy uses, and of a header that the application never gets. */
export function warnOfIdentifier(identifier: SimpleIdentifier, { policies }: PolicySet, warn: Report): void {
  const { name } = identifier;
  const isUsed = policies.some(({ identifier, unless, onlyFor, distinct }) =>
    [...partsOf(identifier), unless, distinct, ...(onlyFor?.keys ?? [])].some((one) => one?.name === name),
  );
  if (!isUsed)
    warn(['identifiers', name], `no policy uses the identifier ${name}`, 'use it, or remove it', 'key');
  const filter = new HeaderFilter();
  for (const source of isUsed ? carriersOf(identifier) : []) {
    // The filter stops Host only because the gateway writes the field itself, with the same value.
    if (source.kind !== 'header' || source.header === 'host' || !filter.stops(source.header, true)) continue;
    warn(
      ['identifiers', name],
      `the gateway removes the header ${source.header} of ${name}, so the application never sees this credential`,
      'use another header, or let it pass with GATEWAY_PASS_HEADERS',
      'key',
    );
  }
}

const NAMES = {
  type: 'array',
  items: { type: 'string' },
  minItems: 2,
  maxItems: 4,
  uniqueItems: true,
  description: 'a list of 2 to 4 names of entries under identifiers',
} as const;

export const identifier = policyKey({
  schema: {
    anyOf: [{ type: 'string' }, NAMES, SOURCES.body, only('first', NAMES)],
    description:
      'the name of an entry under identifiers, path.NAME for a parameter of the route, { body: FIELD }, everyone, host with hosts, a list of 2 to 4 names, or { first: [NAMES] }',
  },
  see: 'policies.md#who-is-counted',
  counted: ({ identifier }) => identifier.name,
  /**
   * Warns of a limit that one client can use up, and of a field that clients can invent. Each value has its own counter,
   * so another policy must bound how many values one client sends.
   */
  warn(policy, { policies }) {
    const { name, identifier } = policy;
    if (!readsBody(identifier)) return easilyUsedUp(policy, { policies });
    const counting = policies.filter(
      ({ identifier: { kind }, distinct }) =>
        kind === 'address' &&
        (distinct === null || partsOf(identifier).some(({ name }) => name === distinct.name)),
    );
    if (areCounted(policy, counting)) return null;
    return [
      `${name} counts a field that clients can invent, and no policy counts their addresses on this route`,
      'add a policy by address, or one client can try any number of values',
    ];
  },
});
