/** A probe shows its sender how the gateway sees it. Nobody else can create one, and it is not charged. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { probeToken } from '#gateway/request/probe.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies:
  - { name: all, route: "* /*", identifier: ip, limit: 2, window: 1d }
`;

t.test('without a token it is a normal client', async (t) => {
  let now = Date.UTC(2026, 10, 20, 12);
  const file = join(temporaryFolder(t), 'access.log');
  const env = { GATEWAY_ACCESS_LOG: file };
  const gateway = await startTestGateway(t, { policies: POLICIES, env, clock: () => now });
  const admin = await startTestAdmin(t, gateway, { clock: () => now });
  const probe = async (token: string): Promise<Record<string, unknown>> => {
    const reply = await fetch(gateway.origin, { headers: { 'x-gateway-probe': token } });
    return (await reply.json()) as Record<string, unknown>;
  };
  const reply = await fetch(`${admin}/api/doctor/probe`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  const { token } = (await reply.json()) as { token: string };
  for (let i = 0; i < 5; i++) {
    t.match(await probe(token), {
      identity: /^[\w-]{22}$/,
      addressFrom: 'socket',
      isPeerTrusted: false,
      forwardedCount: 0,
    });
  }
  const [until = '', digest = ''] = token.split('.');
  const forged = [`${Number(until) + 1}.${digest}`, probeToken(new Digester('another'), now)];
  for (const text of forged) {
    const seen = await probe(text);
    t.equal(seen.method, 'GET', 'the application got it, and it was charged');
    t.notMatch(JSON.stringify(seen.headers), /x-gateway-probe/i);
  }
  t.match(await probe('x'), { status: 429 }, 'the five probes were not charged');
  now += 61_000;
  t.match(await probe(token), { status: 429 }, 'a token is valid for a minute');
  await gateway.gateway.close();
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  t.equal(lines.length, 4, 'a probe is no request of a client');
});

t.test('refuses a token for another purpose, even if it is well-formed', async (t) => {
  const redis = await startRedis(t);
  const now = Date.now();
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_IDENTITY_SECRET: 'configured' };
  const gateway = await startTestGateway(t, { policies: POLICIES, env });
  const ask = async (token: string): Promise<object> =>
    (await (await fetch(gateway.origin, { headers: { 'x-gateway-probe': token } })).json()) as object;
  const digester = new Digester('configured');
  t.match(await ask(probeToken(digester, now)), { addressFrom: 'socket' });
  t.match(await ask(probeToken(digester, now + 3_600_000)), { method: 'GET' });
});
