/** Tests the whole record of each kind of refusal, in the admin API and in `floodgate why`. */
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
const NOON = Date.UTC(2026, 0, 1, 12);
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

t.test('a denial by two policies is recorded with both', async (t) => {
  const gateway = await startTestGateway(t, {
    policies: policyFile(
      'name: first, route: "GET /*", identifier: ip, limit: 2, window: 1h, cost: 2',
      'name: second, route: "GET /a", identifier: ip, limit: 1, window: 2h, algorithm: sliding-window',
    ),
    clock: () => NOON,
    wallClock: () => NOON,
  });
  await fetch(`${gateway.origin}/a`);
  t.match(await refusalOf(t, gateway, '/a?secret'), {
    ...BESIDE,
    decision: 'deny',
    policy: 'second',
    line: 8,
    violated: ['second', 'first'],
    limit: 1,
    used: 1,
    windowSeconds: 7200,
    algorithm: 'sliding-window',
    endsAt: '2026-01-01T16:00:00.000Z',
    identifier: 'ip',
  });
});

t.test('a denial by a limit of requests in flight is recorded', async (t) => {
  const held: object[] = [];
  const upstream = await startUpstream(t, (_req, res) => void held.push(res));
  const gateway = await startTestGateway(t, {
    upstream,
    policies: policyFile('name: slow, route: "GET /*", identifier: ip, concurrency: 1'),
    env: { GATEWAY_DRAIN_TIMEOUT_MS: '0' },
  });
  void fetch(gateway.origin).catch(() => undefined);
  await until(() => held.length === 1);
  const record = await refusalOf(t, gateway);
  t.match(record, {
    ...BESIDE,
    decision: 'deny',
    policy: 'slow',
    algorithm: 'concurrency',
    limit: 1,
    used: 1,
  });
  t.match(textOf(record), {
    reasons: [/policy slow allows 1 in flight at once, and 1 were in flight/],
    advice: /raise concurrency in .*:7/,
  });
});

t.test('a denial by a ban is recorded with its reason', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end());
  const gateway = await startTestGateway(t, {
    upstream,
    policies: policyFile('name: one, route: "GET /*", identifier: ip, limit: 1, window: 366d'),
  });
  await fetch(gateway.origin);
  const { identity } = await refusalOf(t, gateway);
  await gateway.gateway.control.ban({ digest: identity, words: [0, 0, 0, 0] }, 60_000, 'why');
  const banned = await refusalOf(t, gateway);
  t.match(textOf(banned).advice, `floodgate unban ${identity}`);
  t.match(banned, { ...named('operator ban'), decision: 'banned', identity });
});

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
