import { policyKey } from './key.ts';
import { neverReached } from './never-reached.ts';
import { CONCURRENCY_MAX, LIMIT, whole } from './schema-parts.ts';

export const limit = policyKey({
  schema: LIMIT,
  without: 'required, unless `concurrency` or `limits` is set',
  more: 'With a [cost](#costs), units instead of requests',
  counted: ({ limit }) => limit,
  warn: neverReached,
});

export const concurrency = policyKey({
  schema: whole(
    1,
    CONCURRENCY_MAX,
    `instead of limit and window: how many requests may be in flight at once, a whole number from 1 to ${CONCURRENCY_MAX}`,
  ),
  more: 'See [Requests in flight](#requests-in-flight)',
});
