/** Where a request presents who sent it: one row for each kind of source. */
import type { BodyIdentifier, CredentialSource } from '#gateway/identity/identifier.ts';
import { fieldName, fileName, only } from './schema-parts.ts';

const BODY = {
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

const AUDIENCE = { type: 'string', minLength: 1, maxLength: 1000 } as const;

const TOKEN = {
  type: 'object',
  required: ['claim', 'jwks'],
  properties: {
    bearer: { type: 'boolean', const: true },
    header: fieldName,
    cookie: fieldName,
    claim: { type: 'string', minLength: 1, maxLength: 200 },
    jwks: fileName,
    issuer: { type: 'string', minLength: 1, maxLength: 1000 },
    audience: { anyOf: [AUDIENCE, { type: 'array', items: AUDIENCE, minItems: 1, maxItems: 16 }] },
  },
  additionalProperties: false,
} as const;

export const SOURCES = {
  header: only('header', fieldName),
  bearer: only('bearer', { type: 'string', pattern: '^[!-~]*$' }),
  cookie: only('cookie', fieldName),
  query: only('query', { type: 'string', pattern: '^[A-Za-z0-9._~[\\]-]+$' }),
  jwt: only('jwt', TOKEN),
  path: only('path', { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_]*$' }),
  body: BODY,
  network: only('network', fileName),
} as const;

type CredentialEntry =
  | { readonly header: string }
  | { readonly bearer: string }
  | { readonly cookie: string }
  | { readonly query: string };

export function credentialSource(entry: CredentialEntry): CredentialSource {
  if ('header' in entry) return { kind: 'header', header: entry.header.toLowerCase() };
  if ('bearer' in entry) return { kind: 'bearer', prefix: entry.bearer };
  return 'cookie' in entry
    ? { kind: 'cookie', cookie: entry.cookie }
    : { kind: 'query', parameter: entry.query };
}

interface BodyEntry {
  readonly body: string;
  readonly required?: boolean;
}

export function bodyIdentifier(name: string, { body, required = false }: BodyEntry): BodyIdentifier {
  return { name, kind: 'body', field: body, isRequired: required };
}
