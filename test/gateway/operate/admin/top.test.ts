/** Tests `floodgate top`, and that the admin process follows the policy file. */
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { eventually } from '#test/support/gateway-process.ts';
import { LONG_POLICIES, startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';

t.test('one snapshot: rates, totals, the store, and the clients denied most', async (t) => {
  const redis = await startRedis(t);
  const operator = await startOperator(t, { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' });
  const { ask, send } = operator;
  await send(3);
  await send(4);
  const { code, document } = await ask('top', '--once');
  t.equal(code, 0);
  t.match(document, {
    processes: 2,
    store: { kind: 'redis', available: true, replicas: 2 },
    requests: { allowed: 3, denied: 4 },
    policies: [{ policy: 'items', allowed: 3, denied: 4, allowedPerSecond: Number, deniedPerSecond: Number }],
    requestsPerSecond: Number,
  });
  const { document: inspected } = await ask('inspect', '127.0.0.1');
  t.match(document.limited, [{ identity: inspected.identity, denied: 4, policy: 'items', lastAt: /Z$/ }]);

  // Another gateway with the same store tells of it, and sees it.
  const other = await startOperator(t, { GATEWAY_REDIS_URL: redis.url });
  await other.send(2);
  await other.ask('top', '--once');
  await eventually(
    'the denials of both gateways',
    () => operator.ask('top', '--once'),
    ({ document: { limited, isLimitedOfAll } }) =>
      isLimitedOfAll === true && (limited as { denied: number }[])[0]?.denied === 6,
  );

  writeFileSync(operator.policyFile, `${LONG_POLICIES.replace('limit: 3', 'limit: 5')}\n`);
  await eventually(
    'the edited file',
    () => ask('explain', 'GET /items'),
    (explained) => (explained.document.policies as { limit: number }[])[0]?.limit === 5,
  );
});
