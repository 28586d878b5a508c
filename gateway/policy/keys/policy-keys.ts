/** All keys of a policy, in the order in which messages and the documentation list them. */
import { ban } from './ban.ts';
import { except, hosts, query, unless, userAgent } from './conditions.ts';
import { cost } from './cost.ts';
import { distinct } from './distinct.ts';
import { identifier } from './identifier.ts';
import { type AnyPolicyKey, propertiesOf } from './key.ts';
import { limits } from './limits.ts';
import { newcomers } from './newcomers.ts';
import {
  bucket,
  count,
  headers,
  mode,
  name,
  onStoreFailure,
  priority,
  retryJitter,
  rollout,
  route,
} from './plain-keys.ts';
import { QUOTA_KEYS } from './quota-keys.ts';

export const POLICY_KEYS = {
  name,
  route,
  identifier,
  unless,
  hosts,
  userAgent,
  query,
  except,
  ...QUOTA_KEYS,
  limits,
  distinct,
  newcomers,
  cost,
  count,
  bucket,
  rollout,
  mode,
  onStoreFailure,
  ban,
  priority,
  headers,
  retryJitter,
} as const;

type PolicyKeys = typeof POLICY_KEYS;

export const POLICY_ROWS: readonly (readonly [keyof PolicyKeys, AnyPolicyKey])[] = Object.entries(
  POLICY_KEYS,
) as [keyof PolicyKeys, AnyPolicyKey][];

export const policySchema = {
  type: 'object',
  required: ['name', 'route', 'identifier'],
  properties: propertiesOf(POLICY_KEYS),
  additionalProperties: false,
  description: 'a policy has name, route, identifier, limit and window',
} as const;
