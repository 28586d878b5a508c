/** Looks up refusals by their ids, over the admin listener and with the command. */
import t from 'tap';
import { RedisDecisions } from '#gateway/refusals/redis-decisions.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile(
  'name: one, route: "GET /one/*", identifier: ip, limit: 1, window: 366d',
  'name: keys, route: GET /keys, identifier: api-key, limit: 1, window: 366d',
  'name: closed, route: GET /closed, identifier: ip, limit: 100, window: 366d, onStoreFailure: deny',
);

interface Refused {
  readonly status: number;
  readonly id: string;
}

async function ask(origin: string, path: string, headers: Record<string, string> = {}): Promise<Refused> {
  const response = await fetch(`${origin}${path}`, { headers });
  const body = (await response.json()) as { decision?: string };
  const id = response.headers.get('x-gateway-decision') ?? '';
  if (response.status !== 200) t.equal(body.decision, id, 'header and body have the same id');
  return { status: response.status, id };
}

t.test('without Redis the process knows its own decisions', async (t) => {
  const gateway = await startTestGateway(t, { policies: POLICIES });
  const admin = await startTestAdmin(t, gateway, { token: 'secret' });
  t.match(await ask(gateway.origin, '/one/a'), { status: 200, id: '' });
  const refused = await ask(gateway.origin, '/one/../one/a?token=1');
  t.match(refused, { status: 429, id: /^[0-9a-z]{26}$/ });
  t.not((await ask(gateway.origin, '/one/a')).id, refused.id);

  const env = { GATEWAY_ADMIN_TOKEN: 'secret' };
  const { code, stdout } = await floodgateCommand(['why', refused.id, '--gateway', admin, '--json'], { env });
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { id: refused.id, path: '/one/a', policy: 'one', used: 1 });

  const people = await floodgateCommand(['why', refused.id, '--gateway', admin], { env });
  t.match(people.stdout, /policy one allows 1 in 31622400 s, and 1 were used/);
  t.match(people.stdout, /raise limit in .*:7/);

  t.match(await floodgateCommand(['why', refused.id, '--gateway', admin]), { code: 2, stderr: /token/ });
  t.match(await floodgateCommand(['why', 'x', '--gateway', admin], { env }), {
    code: 2,
    stderr: /not a decision id/,
  });
  t.match(await floodgateCommand(['why', '0'.repeat(26), '--gateway', admin], { env }), {
    code: 1,
    stderr: /no refusal with the id 0+ is stored/,
  });
  const response = await fetch(`${admin}/api/decisions/x`, { headers: { authorization: 'Bearer secret' } });
  t.equal(response.status, 400);
  t.equal((await fetch(`${admin}/api/decisions/${refused.id}`)).status, 401);
  t.equal((await fetch(`${admin}/healthz`)).status, 200);
});

t.test('another replica knows a decision, also after the deciding one has ended', async (t) => {
  const redis = await startRedis(t);
  const options = {
    policies: POLICIES,
    env: { GATEWAY_REDIS_URL: redis.url, GATEWAY_TRUSTED_PROXIES: '1' },
  };
  const one = await startTestGateway(t, options);
  const other = await startTestGateway(t, options);
  const headers = { 'x-forwarded-for': '192.0.2.7', 'x-api-key': 'first-key' };
  await fetch(`${one.origin}/one/a`, { headers });
  const last = await ask(one.origin, '/one/a', headers);
  await one.gateway.close();
  await until(async () => (await other.gateway.findDecision(last.id)) !== null);
  for (const key of ['records', 'order']) t.ok((await redis.client.pttl(`fg:{decisions}:${key}`)) > 0);
  const stored = JSON.stringify(await redis.client.hgetall('fg:{decisions}:records'));
  t.notMatch(stored, /192\.0\.2\.7|first-key/);
});

t.test('decisions during an outage of Redis are stored afterwards', async (t) => {
  const redis = await startRedis(t);
  const one = await startTestGateway(t, { policies: POLICIES, env: { GATEWAY_REDIS_URL: redis.url } });
  await redis.kill();
  await until(() => !one.gateway.report(false).storeAvailable);
  const refused = await ask(one.origin, '/closed');
  t.equal(refused.status, 503);
  await ask(one.origin, '/one/a');
  const local = await ask(one.origin, '/one/a');
  t.equal(local.status, 429);
  await redis.restart();
  const reader = new RedisDecisions(accessTo(redis.url));
  t.teardown(() => reader.close());
  for (const { id } of [refused, local])
    await until(async () => (await reader.find(id).catch(() => null)) !== null);
  t.match(await reader.find(refused.id), {
    decision: 'unavailable',
    policy: 'closed',
    used: null,
    decidedBy: 'local',
  });
  t.match(await reader.find(local.id), { decision: 'deny', policy: 'one', decidedBy: 'local' });
});
