/**
 * The shape of `policies.yaml`, stated once: it validates the file, completes and explains it in editors
 * (`policies.schema.json` is written from it), and its descriptions are the mends in error messages.
 */
import { type Static, Type } from 'typebox';

const JSON_SCHEMA_DIALECT = 'http://json-schema.org/draft-07/schema#';

const strict = { additionalProperties: false } as const;

/** Names end up in header fields, metrics and keys of the store. */
const name = (description: string) =>
  Type.String({ pattern: '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$', description });

/** No longer than a request line may be. */
const route = (description: string) =>
  Type.String({ maxLength: 2000, description: `${description}, at most 2000 characters` });

const credentialSource = Type.Union(
  [
    Type.Object({ header: Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }) }, strict),
    Type.Object({ bearer: Type.String({ pattern: '^[!-~]*$' }) }, strict),
  ],
  { description: 'write { header: NAME } or { bearer: PREFIX }' },
);

const identifier = Type.Object(
  {
    source: Type.Union(
      [Type.Literal('client-address'), Type.Array(credentialSource, { minItems: 1, maxItems: 8 })],
      {
        description: 'write client-address, or a list such as [ { header: x-api-key }, { bearer: fbk_ } ]',
      },
    ),
    ipv6Prefix: Type.Optional(
      Type.Integer({
        minimum: 16,
        maximum: 128,
        description:
          'bits of an IPv6 address that make one client, a whole number from 16 to 128; 64 is usual',
      }),
    ),
  },
  { ...strict, description: 'write { source: client-address } or { source: [ { header: x-api-key } ] }' },
);

const policy = Type.Object(
  {
    name: name('a name of its own: lower-case letters, digits, dots, dashes and underscores, at most 64'),
    route: route('METHODS PATH, such as POST /api/items or GET,PUT /api/items/*'),
    identifier: Type.String({ description: 'the name of an entry under identifiers' }),
    limit: Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: 'requests per window, a whole number from 1 to 1000000000',
    }),
    window: Type.String({
      pattern: '^[1-9][0-9]{0,5}(?:s|m|h|d)$',
      description: 'a length of time such as 30s, 1m, 1h or 1d',
    }),
    bucket: Type.Optional(name('the name of a counter that several policies share')),
    mode: Type.Optional(
      Type.Union([Type.Literal('enforce'), Type.Literal('shadow')], {
        description: 'enforce (the default), or shadow to count and report without denying',
      }),
    ),
    onStoreFailure: Type.Optional(
      Type.Union([Type.Literal('allow'), Type.Literal('deny'), Type.Literal('local')], {
        description:
          'allow, deny, or local (the default: counters of this process, limit divided by replicas)',
      }),
    ),
    headers: Type.Optional(
      Type.Union([Type.Literal('on'), Type.Literal('off'), Type.Boolean()], {
        description: 'on (the default) or off: whether replies tell clients about this policy',
      }),
    ),
  },
  { ...strict, description: 'a policy has name, route, identifier, limit and window' },
);

export const policyFileSchema = Type.Object(
  {
    version: Type.Literal(1, { description: 'write version: 1' }),
    identifiers: Type.Record(Type.String({ pattern: '^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$' }), identifier, {
      ...strict,
      description: 'who is counted: names of lower-case letters, digits and dashes, each with a source',
      minProperties: 1,
      maxProperties: 16,
    }),
    exclude: Type.Optional(
      Type.Array(route('METHODS PATH, such as OPTIONS * or GET /health'), {
        description: 'a list of routes that are never limited',
        maxItems: 1000,
      }),
    ),
    policies: Type.Array(policy, { description: 'a list of policies', maxItems: 1000 }),
  },
  {
    ...strict,
    title: 'Floodgate policies',
    description: 'a policy file has version, identifiers and policies',
  },
);

/** The schema as editors read it: the content of `policies.schema.json`. */
export function policyFileJsonSchema(): object {
  return { $schema: JSON_SCHEMA_DIALECT, ...policyFileSchema };
}

export type PolicyFile = Static<typeof policyFileSchema>;
