/** The keys of a limit. They stand in a policy, or in the entries of its `limits`. */
import { policyKey } from './key.ts';
import { DURATION, fileName, LIMIT, LIMIT_MAX, list, object, text, units, whole } from './schema-parts.ts';

const limit = policyKey({
  schema: LIMIT,
  without: 'required, unless `concurrency` or `limits` is set',
  more: 'With a [cost](#costs), units instead of requests',
  counted: ({ limit }) => limit,
});

const overrides = policyKey({
  schema: list(
    object(
      ['for', 'limit'],
      {
        for: {
          ...object(
            [],
            {
              address: text('an address or a network such as 10.0.0.0/8'),
              digest: text('22 characters, as floodgate explain shows them'),
              plan: text('the name of a plan'),
              userAgent: text('the name of a program, such as GPTBot'),
            },
            'write { address: CIDR }, { digest: DIGEST }, { plan: NAME } or { userAgent: NAME }',
          ),
          minProperties: 1,
          maxProperties: 1,
        },
        limit: LIMIT,
      },
      'an override has for and limit',
    ),
    1000,
    'a list of at most 1000 other limits, such as { for: { plan: gold }, limit: 1000 }',
  ),
  see: '#overrides-and-plans',
  counted: ({ overrides }) => overrides?.version,
});

const overridesFile = policyKey({
  schema: {
    ...fileName,
    description: 'the name of a file in the same folder, with one override a line, such as plan gold 1000',
  },
  more: 'Instead of `overrides`',
});

export const window = policyKey({
  schema: {
    type: 'string',
    pattern: `${DURATION.pattern}|^(?:day|week|month)$`,
    description: `${DURATION.description}, or day, week or month for calendar windows`,
  },
  without: 'required with `limit`',
  more: 'At most `366d`',
  see: '#calendar-windows',
  counted: ({ windowMs }) => windowMs,
});

export const algorithm = policyKey({
  schema: {
    enum: ['fixed-window', 'sliding-window', 'token-bucket'],
    description:
      'fixed-window (the default), sliding-window to avoid a double limit at the edge of a window, or token-bucket to refill steadily',
  },
  default: 'fixed-window',
  see: '#algorithms',
  counted: ({ algorithm }) => algorithm,
});

export const burst = policyKey({
  schema: {
    ...units,
    description: `with algorithm: token-bucket, how many requests may come at once, a whole number from 1 to ${LIMIT_MAX}; the limit unless given`,
  },
  without: 'the limit',
  counted: ({ capacity, limit }) => (capacity === limit ? null : capacity),
});

const concurrency = policyKey({
  schema: whole(1, 10_000, 'instead of limit and window: how many requests may be in flight at once'),
  see: '#requests-in-flight',
});

export const QUOTA_KEYS = { limit, overrides, overridesFile, window, algorithm, burst, concurrency } as const;
