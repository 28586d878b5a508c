/** Tests the whole record of a refusal by a bound. Those of other kinds are in test/policies/refusals.yaml. */
import t from 'tap';
import { textOf } from '#gateway/refusals/explain.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

t.test('a refusal by a bound on requests is recorded', async (t) => {
  const held: object[] = [];
  const upstream = await startUpstream(t, (_req, res) => void held.push(res));
  const gateway = await startTestGateway(t, {
    upstream,
    policies: policyFile(),
    env: { GATEWAY_UPSTREAM_CONNECTIONS: '1', GATEWAY_WAITING: '1', GATEWAY_DRAIN_TIMEOUT_MS: '0' },
  });
  void fetch(`${gateway.origin}/b`).catch(() => undefined);
  await until(() => held.length === 1);
  void fetch(`${gateway.origin}/b`).catch(() => undefined);
  await until(() => gateway.sample('floodgate_upstream_waiting') === 1);
  const { headers } = await fetch(`${gateway.origin}/a`);
  const busy = await gateway.gateway.findDecision(headers.get('x-gateway-decision') ?? '');
  if (busy === null) throw new Error('nothing is kept of it');
  t.match(textOf(busy), {
    reasons: [/\(bound waiting\): one client address may hold 1, and 1 were held/],
    facts: [['Counted'], ['Decided'], ['Retry at']],
    advice: /set a larger GATEWAY_CLIENT_SHARE;/,
  });
  t.ok(Date.parse(busy.endsAt) > Date.parse(busy.at));
  const { id, at, endsAt, policyVersion, identity, replica, file, ...fields } = busy;
  t.match(
    { id, at, endsAt, policyVersion, identity, replica, file },
    {
      id: /^[0-9a-z]{26}$/,
      at: /^\d{4}-.*Z$/,
      endsAt: /^\d{4}-.*Z$/,
      policyVersion: /^[0-9a-f]{12}$/,
      identity: /^[\w-]{22}$/,
      replica: /^test:/,
      file: String,
    },
  );
  t.strictSame(fields, {
    ...{ decision: 'busy', policy: 'bound waiting', violated: ['bound waiting'], line: 0 },
    ...{ method: 'GET', path: '/a', cost: 1, limit: 1, used: 1, windowSeconds: 0 },
    ...{ algorithm: 'concurrency', identifier: 'client address', isUnproven: false, addressFrom: 'socket' },
    ...{ decidedBy: 'local', fromMemory: false },
  });
});
