/**
 * Schema of `policies.yaml`, made from the tables of its keys. It validates the file, `policies.schema.json` for
 * editors is generated from it, and its descriptions are the fixes in error messages.
 */
import type { XStatic } from 'typebox/schema';
import { FILE_KEYS } from '#gateway/policy/keys/file-keys.ts';
import { propertiesOf } from '#gateway/policy/keys/key.ts';

const JSON_SCHEMA_DIALECT = 'http://json-schema.org/draft-07/schema#';

export const policyFileSchema = {
  type: 'object',
  required: ['version', 'identifiers', 'policies'],
  properties: propertiesOf(FILE_KEYS),
  additionalProperties: false,
  title: 'Floodgate policies',
  description: 'a policy file has version, identifiers and policies',
} as const;

/** A policy must have one of these sets of keys. */
const QUOTA_KEYS = [['limit', 'window'], ['concurrency'], ['limits']] as const;

export function policyFileJsonSchema(): object {
  const { properties } = policyFileSchema;
  const { policies } = properties;
  // This part of the schema is only for editors. At run time shape.ts checks it, because the validator's messages about
  // `anyOf` are unhelpful.
  const items = { ...policies.items, anyOf: QUOTA_KEYS.map((required) => ({ required })) };
  return {
    $schema: JSON_SCHEMA_DIALECT,
    ...policyFileSchema,
    properties: { ...properties, policies: { ...policies, items } },
  };
}

export type PolicyFile = XStatic<typeof policyFileSchema>;
