/** The keys of a limit. They stand in a policy, or in the entries of its `limits`. */
import { policyKey } from './key.ts';
import { neverReached } from './other-limits.ts';
import { overrides, overridesFile } from './overrides.ts';
import { DURATION, LIMIT, LIMIT_MAX, units, whole } from './schema-parts.ts';

const limit = policyKey({
  schema: LIMIT,
  without: 'required, unless `concurrency` or `limits` is set',
  more: 'With a [cost](#costs), units instead of requests',
  counted: ({ limit }) => limit,
  warn: neverReached,
});

export const window = policyKey({
  schema: {
    type: 'string',
    pattern: `${DURATION.pattern}|^(?:day|week|month)$`,
    description: `${DURATION.description}, or day, week or month for calendar windows`,
  },
  without: 'required with `limit`',
  more: 'At most `366d`. See [Calendar windows](#calendar-windows)',
  counted: ({ windowMs }) => windowMs,
  restarts: () => true,
});

export const algorithm = policyKey({
  schema: {
    enum: ['fixed-window', 'sliding-window', 'token-bucket'],
    description:
      'fixed-window (the default), sliding-window to avoid a double limit at the edge of a window, or token-bucket to refill steadily',
  },
  default: 'fixed-window',
  more: 'See [Algorithms](#algorithms)',
  counted: ({ algorithm }) => algorithm,
  restarts: () => true,
});

export const burst = policyKey({
  schema: {
    ...units,
    description: `with algorithm: token-bucket, how many requests may come at once, a whole number from 1 to ${LIMIT_MAX}; the limit unless given`,
  },
  without: 'the limit',
  counted: ({ capacity, limit }) => (capacity === limit ? null : capacity),
});

const CONCURRENCY_MAX = 10_000;

const concurrency = policyKey({
  schema: whole(
    1,
    CONCURRENCY_MAX,
    `instead of limit and window: how many requests may be in flight at once, a whole number from 1 to ${CONCURRENCY_MAX}`,
  ),
  more: 'See [Requests in flight](#requests-in-flight)',
});

export const QUOTA_KEYS = { limit, overrides, overridesFile, window, algorithm, burst, concurrency } as const;
