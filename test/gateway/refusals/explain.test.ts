/** Tests that the id of a refusal explains it, although it is not stored, and that the access log has the rest. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { DecisionIds } from '#gateway/refusals/decision-ids.ts';
import type { PartialRecord } from '#gateway/refusals/decision-record.ts';
import { explained, recordOfId } from '#gateway/refusals/explain.ts';
import { RedisDecisions } from '#gateway/refusals/redis-decisions.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const ONE = 'name: one, route: "GET /one/*", identifier: ip, limit: 1, window: 366d';
const KEYS = 'name: keys, route: GET /keys, identifier: api-key, limit: 1, window: 366d';
const DENIED = '\ndeny: [{ address: 192.0.2.66 }]\n';
const WITHOUT_DETAILS = { limit: 1, used: null, identity: null, addressFrom: null, decidedBy: null };

async function start(
  t: Test,
  policies: string,
  env: Record<string, string>,
): Promise<TestGateway & { admin: string }> {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(401).end('{}'));
  const options = { GATEWAY_TRUSTED_PROXIES: 'loopback', ...env };
  const gateway = await startTestGateway(t, { upstream, policies, env: options });
  return { ...gateway, admin: await startTestAdmin(t, gateway) };
}

async function refusedAt({ port }: TestGateway, path: string, from: string, key?: string): Promise<string> {
  for (let i = 0; ; i++) {
    const headers = { 'x-forwarded-for': from, ...(key === undefined ? {} : { 'x-api-key': `${key} ${i}` }) };
    const answer = await send(port, path, { headers });
    const id = answer.headers['x-gateway-decision'];
    if (typeof id === 'string') return id;
  }
}

async function why(admin: string, id: string): Promise<{ record: PartialRecord; text: string }> {
  const { stdout, stderr } = await floodgateCommand(['why', id, '--gateway', admin, '--json']);
  if (stdout === '') throw new Error(stderr);
  const { stdout: text } = await floodgateCommand(['why', id, '--gateway', admin]);
  return { record: JSON.parse(stdout), text };
}

/** Forgets all records, as if nothing had been stored. */
async function forget({ client }: RedisServer): Promise<void> {
  await client.del('fg:{decisions}:records', 'fg:{decisions}:order');
}

t.test('every gateway with the same salt knows policy, second and process', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const policies = policyFile(ONE, KEYS) + DENIED;
  const one = await start(t, policies, env);
  const other = await start(t, policies, env);
  const changed = await start(t, policyFile(KEYS, ONE), env);
  const removed = await start(t, policyFile(KEYS), env);
  const stranger = await start(t, policies, {
    GATEWAY_IDENTITY_SECRET: 'another secret of 32 characters and more',
  });

  const before = Date.now();
  const id = await refusedAt(one, '/one/a', '192.0.2.1');
  const unproven = await refusedAt(one, '/keys', '192.0.2.2', 'second');
  const listed = await refusedAt(one, '/one/a', '192.0.2.66');
  const store = new RedisDecisions(accessTo(redis.url));
  t.teardown(() => store.close());
  for (const refused of [id, unproven, listed]) await until(async () => (await store.find(refused)) !== null);
  const stored = await one.gateway.findDecision(id);
  await forget(redis);

  const { record, text } = await why(other.admin, id);
  t.match(record, {
    ...WITHOUT_DETAILS,
    id,
    decision: 'deny',
    policy: 'one',
    line: 7,
    policyVersion: stored?.policyVersion,
    windowSeconds: 31_622_400,
    isUnproven: false,
    replica: stored?.replica,
  });
  const at = Date.parse(record.at);
  t.ok(at >= before - 1000 && at <= Date.now() && at % 1000 === 0, record.at);
  t.match(text, /The limit was reached: policy one allows 1 in 31622400 s\./);
  t.match(text, new RegExp(`floodgate why ${id} --log FILE finds it`));
  t.match((await why(other.admin, unproven)).record, { policy: 'keys', isUnproven: true });
  t.match((await why(other.admin, listed)).record, { decision: 'listed', policy: 'deny list', line: null });

  const old = await why(changed.admin, id);
  t.match(old.record, { policy: 'one', line: 8, policyVersion: null, limit: null });
  t.match(old.text, /The policy file has changed since/);
  t.match(await why(removed.admin, id), {
    record: { policy: null, line: null },
    text: /The limit of a policy that is no longer in the file was reached/,
  });
  const explanation = await fetch(`${other.admin}/api/decisions/${id}`);
  t.match(await explanation.json(), {
    id,
    policy: 'one',
    identity: null,
    facts: [['Line'], ['Decided']],
  });
  t.match(await floodgateCommand(['why', id, '--gateway', stranger.admin]), {
    code: 1,
    stderr: /another GATEWAY_IDENTITY_SECRET/,
  });
});

t.test('while the store is away, ids are read with the configured salt', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_IDENTITY_SECRET: 'a secret of at least 32 characters' };
  const gateway = await start(t, policyFile(ONE), env);
  const id = await refusedAt(gateway, '/one/a', '192.0.2.1');
  const store = new RedisDecisions(accessTo(redis.url));
  t.teardown(() => store.close());
  await until(async () => (await store.find(id)) !== null);
  await redis.kill();
  const told = await (await fetch(`${gateway.admin}/api/decisions/${id}`)).json();
  t.match(told, { policy: 'one', replica: null });
  t.match(told, { facts: [['Line'], ['Decided', /while the store is away/]], advice: /the store is away/ });
  t.notMatch(JSON.stringify(told), /is not stored|not running/, 'nobody knows that');
});

t.test('an id says what its policy allows in the words of a stored refusal', async (t) => {
  const rows = [
    'name: burst, route: GET /burst, identifier: ip, limit: 1, window: 366d, algorithm: token-bucket, burst: 3',
    'name: month, route: GET /month, identifier: ip, limit: 2, window: month',
    'name: held, route: GET /held, identifier: ip, concurrency: 1',
  ];
  const set = loadPolicies(policyFile(...rows), 'policies.yaml');
  const ids = new DecisionIds('salt', 'host:1');
  const said = (policy: string): readonly string[] => {
    const id = ids.next({ decision: 'deny', policy, isUnproven: false }, set.version, Date.now());
    const record = recordOfId(id, 'salt', { policies: set, replicas: ['host:1'] });
    return record === null ? [] : explained(record, null, false).reasons;
  };
  t.strictSame(['burst', 'month', 'held'].flatMap(said), [
    'The limit was reached: policy burst allows 3 at once.',
    'The limit was reached: policy month allows 2 in a calendar month.',
    'The limit was reached: policy held allows 1 in flight at once.',
  ]);
});

t.test('--log adds the line of the access log, also without the gateway', async (t) => {
  const redis = await startRedis(t);
  const folder = temporaryFolder(t);
  const log = join(folder, 'access.log');
  const gateway = await start(t, policyFile(ONE), { GATEWAY_REDIS_URL: redis.url, GATEWAY_ACCESS_LOG: log });
  const id = await refusedAt(gateway, '/one/a', '192.0.2.1');
  await until(() =>
    readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .some((line) => line.includes(id)),
  );
  await forget(redis);
  const packed = join(folder, 'access.log.1.gz');
  writeFileSync(packed, gzipSync(readFileSync(log)));

  const away = `http://127.0.0.1:${await freePort()}`;
  for (const admin of [gateway.admin, away]) {
    const asked = ['why', id, '--gateway', admin, '--log', packed];
    const whole = JSON.parse((await floodgateCommand([...asked, '--json'])).stdout);
    t.match(whole.log, { id, method: 'GET', path: '/one/a', status: 429, policy: 'one' }, admin);
    if (admin !== away) t.match(whole, { id, policy: 'one' }, 'what the id says stays');
    const { code, stdout } = await floodgateCommand(asked);
    t.equal(code, 0);
    t.match(stdout, /The access log has:[\s\S]*path: \/one\/a/);
    t.equal(stdout.includes('was refused at'), admin !== away);
  }
  t.match(await floodgateCommand(['why', '0'.repeat(26), '--gateway', away, '--log', log]), {
    code: 1,
    stderr: /has no line with the id/,
  });
  t.match(await floodgateCommand(['why', id, '--gateway', away, '--log', join(folder, 'none')]), { code: 3 });
  t.match(await floodgateCommand(['why', id, '--gateway', away]), { code: 3 });
});
