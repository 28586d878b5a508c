/** JSON Schemas of replies. The description of the API uses them, and tests check replies against them. */

export const text = { type: 'string' } as const;
export const number = { type: 'number' } as const;
export const integer = { type: 'integer' } as const;
export const flag = { type: 'boolean' } as const;
export const time = { type: 'string', format: 'date-time' } as const;
const digest = {
  type: 'string',
  pattern: '^[\\w-]{22}$',
  description: 'Digest of an address or a key. It can be computed from these, but not reversed',
} as const;

export function nullable<T extends { readonly type: string }>(schema: T) {
  return { ...schema, type: [schema.type, 'null'] } as const;
}

/**
 * Returns the schema of an object. All fields are required; later versions may add more.
 *
 * @param title name in the description; '' for none
 */
export function shape<T extends Readonly<Record<string, unknown>>>(title: string, properties: T) {
  return {
    ...(title === '' ? {} : { title }),
    type: 'object',
    properties,
    required: Object.keys(properties),
  } as const;
}

export function listOf<T>(items: T) {
  return { type: 'array', items } as const;
}

/** Returns the schema of the body or the query of a request. @param required names of the required fields */
export function input<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: 'object', properties, required, additionalProperties: false } as const;
}

/** Errors that a route declares. */
export function refusals(...statuses: readonly number[]): Record<number, typeof messageSchema> {
  return Object.fromEntries(statuses.map((status) => [status, messageSchema]));
}

export const messageSchema = shape('Message', {
  message: { ...text, description: 'What is wrong, and what to do' },
});

const address = {
  ...nullable(text),
  description: 'Address of the client; null if unknown, or if addresses are hidden',
} as const;

export const algorithm = {
  enum: ['fixed-window', 'sliding-window', 'token-bucket', 'concurrency', 'calendar-window'],
} as const;

const addresses = {
  type: 'object',
  additionalProperties: text,
  description: 'Known addresses by digest; empty while addresses are hidden',
} as const;

const decision = {
  id: { ...text, description: 'Value of x-gateway-decision in the refused reply' },
  at: time,
  decision: { enum: ['deny', 'unavailable', 'listed', 'banned', 'busy'] },
  method: text,
  path: { ...text, description: 'Canonical, without the query' },
  policy: { ...text, description: 'The denying policy with the longest wait' },
  line: { ...integer, description: 'Line of the policy in the file; 0 if it is not in the file' },
  file: text,
  policyVersion: text,
  violated: listOf(text),
  limit: number,
  used: { ...nullable(number), description: 'null if unknown' },
  cost: number,
  windowSeconds: number,
  algorithm,
  endsAt: { ...time, description: 'When there is room again' },
  identity: digest,
  identifier: text,
  isUnproven: { ...flag, description: 'Counted by address, for unproven credentials' },
  addressFrom: text,
  decidedBy: { enum: ['store', 'local'] },
  fromMemory: flag,
  replica: text,
} as const;

/** A refusal that is not stored. The id says its time, kind, policy and process. */
const partialDecision = {
  ...Object.fromEntries(
    Object.entries(decision).map(([name, schema]) => [
      name,
      'type' in schema ? { ...schema, type: [schema.type, 'null'].flat() } : { enum: [...schema.enum, null] },
    ]),
  ),
  id: decision.id,
  at: decision.at,
  decision: decision.decision,
};

export const decisionSchema = shape('Decision', { ...partialDecision, address });

export const decisionsSchema = shape('', {
  decisions: listOf(shape('StoredDecision', decision)),
  addresses,
  next: { ...nullable(text), description: 'Value of before for the next page; null if there is none' },
});

export const explainedDecisionSchema = shape('', {
  decision: decisionSchema,
  what: text,
  reasons: listOf(text),
  facts: { ...listOf(listOf(text)), description: 'Names and values' },
  advice: { ...text, description: 'How to admit such requests' },
});

export const topSchema = shape('Top', {
  at: time,
  processes: { ...integer, description: 'Of this gateway' },
  store: shape('', {
    kind: { enum: ['redis', 'memory'] },
    available: flag,
    awaySince: { ...nullable(time), description: 'When processes began to decide without it' },
    processesWithout: integer,
    replicas: { ...integer, description: 'Processes that share it, on all machines' },
  }),
  requests: { type: 'object', additionalProperties: number, description: 'By outcome, since the start' },
  policies: listOf(
    shape('', { policy: text, allowed: number, denied: number, shadowDenied: number, degraded: number }),
  ),
  limited: {
    ...listOf(shape('', { identity: digest, denied: number, admitted: number, policy: text, lastAt: time })),
    description: 'Clients denied most often by all gateways, each with the policy that denied it last',
  },
  isLimitedOfAll: {
    ...flag,
    description: 'false if the store is unavailable, so that limited has the denials of this gateway only',
  },
  paths: {
    ...listOf(shape('', { path: text, requests: number, refused: number })),
    description: 'Paths requested most often, without the query',
  },
  limitedSince: { ...time, description: 'Start of the time that limited and paths cover' },
});

export const explanationSchema = shape('Explanation', {
  decision: { enum: ['allow', 'deny', 'uncovered', 'malformed'] },
  path: text,
  status: { ...nullable(integer), description: 'Status of the gateway; null if the application answers' },
  headers: { type: 'object', additionalProperties: text },
  reason: nullable(text),
  priority: {
    ...nullable(text),
    description: 'Priority of the request while the application is overloaded; null without protect',
  },
  policies: listOf(
    shape('ExplainedPolicy', {
      name: text,
      line: integer,
      matched: flag,
      reason: text,
      identity: nullable(digest),
      bucket: text,
      limit: number,
      windowSeconds: number,
      algorithm,
      used: nullable(number),
      cost: nullable(number),
      remaining: nullable(number),
    }),
  ),
});

const ban = {
  until: time,
  reason: text,
  policy: {
    ...nullable(text),
    description: 'Row of the policy file that made the ban; null if an operator did',
  },
} as const;

export const bansSchema = shape('Bans', {
  total: { ...integer, description: 'Active bans, also those that are not listed' },
  bans: { ...listOf(shape('', { identity: digest, ...ban })), description: 'The newest first' },
  addresses,
});

const inspected = {
  identity: digest,
  address,
  buckets: listOf(
    shape('Bucket', {
      policy: text,
      bucket: text,
      unproven: flag,
      used: number,
      limit: number,
      resetAt: time,
    }),
  ),
  banned: flag,
  ban: { ...nullable({ type: 'object' }), properties: ban },
} as const;

export const inspectedSchema = shape('Client', inspected);
export const resetSchema = shape('', {
  ...inspected,
  cleared: { ...integer, description: 'Counters that were not empty' },
});
export const changedSchema = shape('', {
  ...inspected,
  changed: { ...flag, description: 'false if nothing changed' },
});

export const shownAddressesSchema = shape('', {
  until: { ...nullable(time), description: 'null if they are hidden' },
});

export const doctorSchema = {
  ...shape('Doctor', {
    version: text,
    nodeVersion: text,
    publicPort: integer,
    tls: {
      type: ['object', 'null'],
      properties: { file: text, problem: nullable(text), daysLeft: nullable(integer) },
      required: ['file', 'problem', 'daysLeft'],
    },
    now: number,
    policies: shape('', {
      file: text,
      version: text,
      state: { enum: ['same', 'changed', 'refused', 'unreadable'] },
      reason: nullable(text),
    }),
    trust: shape('', { kind: { enum: ['none', 'cidrs', 'hops'] }, hops: integer, tooWide: listOf(text) }),
    spellings: listOf(shape('', { kind: text, policy: text, path: text, other: text })),
    keyPlaces: listOf(shape('', { identifier: text, path: text, sources: { type: 'array' } })),
    openFiles: shape('', { max: nullable(integer), needed: integer }),
    upstream: shape('', { origin: text, problem: nullable(text) }),
    store: { type: ['object', 'null'], properties: { problem: nullable(text) }, required: ['problem'] },
  }),
  description: 'What the gateway knows of its own set-up',
} as const;

export const probeSchema = shape('Probe', { token: text });

const series = { ...listOf(number), description: 'Oldest span first; missing if all are 0' } as const;

export const trafficSchema = shape('Traffic', {
  spanSeconds: number,
  lastSpanAt: time,
  since: time,
  policies: listOf({
    type: 'object',
    properties: { policy: text, allowed: series, denied: series, shadowDenied: series, degraded: series },
    required: ['policy'],
  }),
  requests: { type: 'object', additionalProperties: listOf(number), description: 'By outcome' },
  statuses: {
    type: 'object',
    additionalProperties: listOf(number),
    description: 'Replies of the application by class of status; none: it did not answer',
  },
  boundsSeconds: listOf(number),
  decisionTime: { ...listOf(listOf(number)), description: 'Distribution of durations for each span' },
  storeTime: listOf(listOf(number)),
  marks: {
    ...listOf(shape('Mark', { at: time, kind: { enum: ['reload', 'change', 'outage', 'recovery'] }, text })),
    description: 'The latest events of the gateway, oldest first',
  },
});

export const policiesSchema = shape('Policies', {
  file: text,
  version: text,
  refusal: { ...nullable(text), description: 'Why the current file is not in use; null if it is' },
  areShadowsKnown: {
    ...flag,
    description: 'false if the store is unavailable, so the shadow modes are unknown',
  },
  text: { ...text, description: 'Of the file as loaded' },
  policies: listOf(
    shape('Policy', {
      name: text,
      line: integer,
      bucket: text,
      route: text,
      identifier: text,
      limit: number,
      windowSeconds: number,
      algorithm,
      mode: { enum: ['enforce', 'shadow'], description: 'As the file has it' },
      shadowEndsAt: { ...nullable(time), description: 'null if no operator has put it in shadow mode' },
    }),
  ),
});

export const shadowSchema = shape('', {
  policies: { ...listOf(text), description: 'Names of all policies that share the counter' },
  shadowEndsAt: nullable(time),
  changed: flag,
});

export const sessionSchema = shape('', {
  isNeeded: { ...flag, description: 'false if no token is set' },
  isSignedIn: flag,
  endsAt: nullable(time),
});

export const newSessionSchema = shape('', {
  proof: { ...text, description: 'Send it as x-floodgate-proof together with the cookie' },
  endsAt: time,
});
