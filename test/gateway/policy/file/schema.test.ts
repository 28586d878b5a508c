import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t from 'tap';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import { policyFileSchema } from '#gateway/policy/keys/file-keys.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
const FILE = resolve(ROOT, 'gateway/policies.schema.json');
const FIX =
  'UPDATE=1 node test/gateway/policy/file/schema.test.ts && npx biome format --write gateway/policies.schema.json';

/** A policy must have one of these sets of keys. */
const QUOTA_KEYS = [['limit', 'window'], ['concurrency'], ['limits']];

/**
 * The schema for editors. At run time shape.ts checks the sets of keys, because the validator's messages about `anyOf`
 * are unhelpful.
 */
function schemaForEditors(): object {
  const { properties } = policyFileSchema;
  const { policies } = properties;
  const items = { ...policies.items, anyOf: QUOTA_KEYS.map((required) => ({ required })) };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...policyFileSchema,
    properties: { ...properties, policies: { ...policies, items } },
  };
}

t.test('gateway/policies.schema.json is generated from the schema', async (t) => {
  const text = JSON.stringify(schemaForEditors(), null, 2);
  if (process.env.UPDATE === '1') writeFileSync(FILE, `${text}\n`);
  t.strictSame(JSON.parse(readFileSync(FILE, 'utf8')), JSON.parse(text), `to rewrite it: ${FIX}`);
});

t.test('the schema accepts the project policies and refuses unknown keys at every level', async (t) => {
  const schema = JSON.parse(readFileSync(FILE, 'utf8'));
  const file = parse(readFileSync(resolve(ROOT, 'policies.yaml'), 'utf8'));
  t.ok(Value.Check(schema, file));
  t.notOk(Value.Check(schema, { ...file, limits: [] }));
  t.notOk(Value.Check(schema, { ...file, policies: [{ ...file.policies[0], price: 1 }] }));
  t.notOk(Value.Check(schema, { ...file, identifiers: { IP: file.identifiers.ip } }));
  t.notOk(Value.Check(schema, { ...file, identifiers: { ip: { ...file.identifiers.ip, salt: 1 } } }));
});
