/** Where a request presents who sent it: one row for each kind of source. */
import type { BodyIdentifier, CredentialSource } from '#gateway/identity/identifier.ts';
import { fieldName, fileName, flag, object, only, shortText, some, text } from './schema-parts.ts';

const BODY = object(
  ['body'],
  {
    body: {
      ...text('the name of a field at the top of the body, such as email'),
      pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$',
    },
    required: flag('true refuses requests of which the gateway cannot read the field'),
  },
  'write { body: FIELD }, such as { body: email }',
);

const AUDIENCE = shortText(1000, 'an audience of the token');

const TOKEN = object(
  ['claim', 'jwks'],
  {
    bearer: { type: 'boolean', const: true },
    header: fieldName,
    cookie: fieldName,
    claim: shortText(200, 'the claim that names the client'),
    jwks: fileName,
    issuer: shortText(1000, 'the issuer of the token'),
    audience: { anyOf: [AUDIENCE, some(AUDIENCE, 16, 'audiences, of which the token has one')] },
  },
  'a signed token',
);

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
