/** Tests the whole record of a refusal by a bound. Those of other kinds are in test/policies/refusals.yaml. */
import t, { type Test } from 'tap';
import type { DecisionRecord } from '#gateway/refusals/decision-record.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

/** Values that differ between runs. */
const ANY = {
  id: /^[0-9a-z]{26}$/,
  at: /^\d{4}-.*Z$/,
  endsAt: /^\d{4}-.*Z$/,
  policyVersion: /^[0-9a-f]{12}$/,
  identity: /^[\w-]{22}$/,
  replica: /^test:/,
};
const BESIDE = {
  ...ANY,
  method: 'GET',
  path: '/a',
  file: String,
  cost: 1,
  windowSeconds: 0,
  isUnproven: false,
  addressFrom: 'socket',
  decidedBy: 'local',
  fromMemory: false,
};

/** Fields of a record without a policy. @param name stands in its place */
const named = (name: string) => ({
  ...BESIDE,
  policy: name,
  line: 0,
  violated: [name],
  limit: 0,
  used: null,
  algorithm: 'fixed-window',
  identifier: name,
});

async function recordOf(t: Test, { gateway }: TestGateway, id: string | null): Promise<DecisionRecord> {
  const record = await gateway.findDecision(id ?? '');
  if (record === null) throw new Error(`nothing is kept of ${id}`);
  const seconds = (Date.parse(record.endsAt) - Date.parse(record.at)) / 1000;
  t.ok(seconds > 0);
  const { refusals, ...fields } = record;
  t.strictSame(Object.keys(fields).sort(), [
    ...['addressFrom', 'algorithm', 'at', 'cost', 'decidedBy', 'decision', 'endsAt', 'file', 'fromMemory'],
    ...['id', 'identifier', 'identity', 'isUnproven', 'limit', 'line', 'method', 'path', 'policy'],
    ...['policyVersion', 'replica', 'used', 'violated', 'windowSeconds'],
  ]);
  t.equal(refusals, undefined, 'it stands for itself');
  return record;
}

async function refusalOf(t: Test, gateway: TestGateway, path = '/a'): Promise<DecisionRecord> {
  const { headers } = await fetch(`${gateway.origin}${path}`);
  return recordOf(t, gateway, headers.get('x-gateway-decision'));
}

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
  const busy = await refusalOf(t, gateway);
  t.match(textOf(busy), {
    reasons: [/\(bound waiting\): one client address may hold 1, and 1 were held/],
    facts: [['Counted'], ['Decided'], ['Retry at']],
    advice: /set a larger GATEWAY_CLIENT_SHARE;/,
  });
  t.match(busy, {
    ...named('bound waiting'),
    decision: 'busy',
    limit: 1,
    used: 1,
    algorithm: 'concurrency',
    identifier: 'client address',
  });
});
