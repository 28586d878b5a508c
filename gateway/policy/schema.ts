/**
 * Schema of `policies.yaml`. It validates the file, `policies.schema.json` for editors is generated from it, and its
 * descriptions are the fixes in error messages.
 *
 * It is plain JSON Schema, without TypeBox's builder, which would cost 12 MB in every gateway process.
 */
import type { XStatic } from 'typebox/schema';
import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { BODY_FIELD, identifierSchema } from './identifier-schema.ts';
import { fieldName, fileName, LIMIT_MAX, only, route, units } from './schema-parts.ts';
import { testSchema } from './test-schema.ts';

const JSON_SCHEMA_DIALECT = 'http://json-schema.org/draft-07/schema#';

/** Names appear in header fields, metrics and store keys, so few characters are allowed. */
const name = (description: string) =>
  ({ type: 'string', pattern: '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$', description }) as const;

const CONCURRENCY_MAX = 10_000;

const LIMIT = {
  ...units,
  description: `requests per window, a whole number from 1 to ${LIMIT_MAX}`,
} as const;

const OVERRIDES = {
  type: 'array',
  maxItems: 1000,
  items: {
    type: 'object',
    required: ['for', 'limit'],
    properties: {
      for: {
        type: 'object',
        properties: {
          address: { type: 'string', description: 'an address or a network such as 10.0.0.0/8' },
          digest: { type: 'string', description: '22 characters, as floodgate explain shows them' },
          plan: { type: 'string', description: 'the name of a plan' },
          userAgent: { type: 'string', description: 'the name of a program, such as GPTBot' },
        },
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
        description: 'write { address: CIDR }, { digest: DIGEST }, { plan: NAME } or { userAgent: NAME }',
      },
      limit: LIMIT,
    },
    additionalProperties: false,
    description: 'an override has for and limit',
  },
  description: 'a list of at most 1000 other limits, such as { for: { plan: gold }, limit: 1000 }',
} as const;

const DURATION = {
  type: 'string',
  pattern: '^[1-9][0-9]{0,5}(?:s|m|h|d)$',
  description: 'a length of time such as 30s, 1m, 1h or 1d',
} as const;

const WINDOW = {
  type: 'string',
  pattern: `${DURATION.pattern}|^(?:day|week|month)$`,
  description: `${DURATION.description}, or day, week or month for calendar windows`,
} as const;

const quota = {
  limit: LIMIT,
  overrides: OVERRIDES,
  overridesFile: {
    ...fileName,
    description: 'the name of a file in the same folder, with one override a line, such as plan gold 1000',
  },
  window: WINDOW,
  algorithm: {
    enum: ['fixed-window', 'sliding-window', 'token-bucket'],
    description:
      'fixed-window (the default), sliding-window to avoid a double limit at the edge of a window, or token-bucket to refill steadily',
  },
  burst: {
    ...units,
    description: `with algorithm: token-bucket, how many requests may come at once, a whole number from 1 to ${LIMIT_MAX}; the limit unless given`,
  },
  concurrency: {
    type: 'integer',
    minimum: 1,
    maximum: CONCURRENCY_MAX,
    description: `instead of limit and window: how many requests may be in flight at once, a whole number from 1 to ${CONCURRENCY_MAX}`,
  },
} as const;

const ENTRY_IDENTIFIER = {
  type: 'string',
  description: 'the clients that this limit counts, if they differ from those of its row, such as everyone',
} as const;

const policy = {
  type: 'object',
  required: ['name', 'route', 'identifier'],
  properties: {
    name: name('a unique name: lower-case letters, digits, dots, dashes and underscores, at most 64'),
    route: route('METHODS PATH, such as POST /api/items or GET,PUT /api/items/*'),
    identifier: {
      anyOf: [
        { type: 'string' },
        { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 4, uniqueItems: true },
        BODY_FIELD,
      ],
      description:
        'the name of an entry under identifiers, path.NAME for a parameter of the route, { body: FIELD }, everyone, or a list of 2 to 4 names',
    },
    ...quota,
    limits: {
      type: 'array',
      minItems: 1,
      maxItems: 8,
      items: {
        type: 'object',
        properties: { ...quota, identifier: ENTRY_IDENTIFIER },
        additionalProperties: false,
        description: 'an entry of limits has limit and window, or concurrency',
      },
      description:
        'instead of limit and window: a list of 1 to 8 limits that all apply, such as { limit: 100, window: 1m } and { concurrency: 20 }',
    },
    cost: {
      anyOf: [
        units,
        { type: 'string', const: 'body-bytes' },
        only('header', fieldName),
        {
          type: 'object',
          required: ['replyHeader', 'reserve'],
          properties: { replyHeader: fieldName, reserve: units },
          additionalProperties: false,
        },
        only('body-bytes', units),
      ],
      description:
        'how much of the limit a request uses: a number (1 unless given), { header: NAME }, { replyHeader: NAME, reserve: N } if a header of the reply reports it, body-bytes, or { body-bytes: N } with the cost of a body of unknown length',
    },
    count: {
      enum: ['request', 'failure', 'success'],
      description:
        'request (the default), or failure or success to count only requests that the application answers with 4xx or 5xx, or with less',
    },
    bucket: name('the name of a counter that several policies share'),
    rollout: {
      anyOf: [
        { type: 'number', minimum: 0, maximum: 100 },
        { type: 'string', pattern: '^(?:100|[0-9]{1,2}(?:\\.[0-9]{1,3})?)%$' },
      ],
      description: 'a percentage of all clients, such as 10%: the others are not counted by this policy',
    },
    mode: {
      enum: ['enforce', 'shadow'],
      description: 'enforce (the default), or shadow to count and report without denying',
    },
    onStoreFailure: {
      enum: ['allow', 'deny', 'local'],
      description: 'allow, deny, or local (the default: counters of this process, limit divided by replicas)',
    },
    ban: {
      type: 'object',
      required: ['after', 'within', 'for'],
      properties: {
        after: {
          type: 'integer',
          minimum: 1,
          maximum: 1_000_000,
          description: 'after how many denials, a whole number from 1 to 1000000',
        },
        within: DURATION,
        for: DURATION,
        growing: {
          type: 'boolean',
          description: 'true if each ban is twice as long as the one before; false is the default',
        },
      },
      additionalProperties: false,
      description: 'bans clients that are denied too often: write { after: 50, within: 10m, for: 1h }',
    },
    priority: {
      enum: PRIORITIES,
      description:
        'with protect: who waits behind the others and is refused first, low, normal (the default) or high',
    },
    headers: {
      enum: ['on', 'off', true, false],
      description: 'on (the default) or off: whether replies have limit headers for this policy',
    },
  },
  additionalProperties: false,
  description: 'a policy has name, route, identifier, limit and window',
} as const;

const listed = {
  address: { type: 'string', description: 'an address or a network such as 203.0.113.0/24' },
  digest: { type: 'string', description: '22 characters, as the access log shows them under identities' },
  file: {
    ...fileName,
    description: 'the name of a file in the same folder, with one network or program a line',
  },
} as const;

const allowed = {
  type: 'object',
  properties: listed,
  minProperties: 1,
  additionalProperties: false,
  description: 'write { address: CIDR }, { digest: DIGEST } or { file: NAME }',
} as const;

const denied = {
  type: 'object',
  properties: {
    ...listed,
    userAgent: {
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 1000 }],
      description: 'the name of a program in its User-Agent, such as GPTBot, or a list of names',
    },
    route: route('METHODS PATH, such as * /internal/*'),
    status: {
      enum: [403, 429],
      description: '403 or 429; unless given, it is 429 for a client and 403 for a route',
    },
    reason: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
      description:
        'the reason shown to the client: one line of at most 200 characters, without control characters',
    },
  },
  minProperties: 1,
  additionalProperties: false,
  description: 'write one of address, digest, userAgent, route and file, with status and reason if you like',
} as const;

export const policyFileSchema = {
  type: 'object',
  required: ['version', 'identifiers', 'policies'],
  properties: {
    version: { type: 'number', const: 1, description: 'write version: 1' },
    identifiers: {
      type: 'object',
      patternProperties: { '^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$': identifierSchema },
      additionalProperties: false,
      description:
        'how clients are identified: names of lower-case letters, digits and dashes, each with a source',
      minProperties: 1,
      maxProperties: 16,
    },
    exclude: {
      type: 'array',
      items: route('METHODS PATH, such as OPTIONS * or GET /health'),
      description: 'a list of routes that are never limited',
      maxItems: 1000,
    },
    ignoreCase: {
      type: 'boolean',
      description: 'true if the application treats /LOGIN like /login; false is the default',
    },
    timezone: {
      type: 'string',
      pattern: '^[A-Za-z][A-Za-z0-9_+/-]{0,63}$',
      description: 'the time zone of calendar windows, such as Europe/Berlin; UTC unless given',
    },
    protect: {
      enum: ['on', 'shadow', 'off', true, false],
      description:
        'on to admit fewer requests at once while the application replies slowly, shadow to only report it, or off (the default)',
    },
    allow: {
      type: 'array',
      items: allowed,
      maxItems: 10_000,
      description: 'a list of clients and networks that no policy counts',
    },
    deny: {
      type: 'array',
      items: denied,
      maxItems: 10_000,
      description: 'a list of clients, networks and routes that are refused',
    },
    plan: {
      ...only('header', { ...fieldName, description: 'the name of a header field, such as x-plan' }),
      description: 'where trusted proxies name the plan of a client, such as { header: x-plan }',
    },
    plans: {
      ...only('file', {
        ...fileName,
        description: 'the name of a file in the same folder, with one client a line, such as 192.0.2.7 gold',
      }),
      description: 'a file with the plans of clients, such as { file: plans.txt }',
    },
    replies: {
      ...only('page', {
        ...fileName,
        description: 'the name of an HTML file in the same folder, with {seconds}, {policy} or {decision}',
      }),
      description: 'the page that browsers get when a request is refused, such as { page: denied.html }',
    },
    policies: { type: 'array', items: policy, description: 'a list of policies', maxItems: 1000 },
    tests: {
      type: 'array',
      items: testSchema,
      description: 'a list of tests that the file has to pass before it is used',
      maxItems: 1000,
    },
  },
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
