/** No address and no credential of a client is stored, logged or shown, whatever happens to its requests. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const ADDRESSES = ['203.0.113.77', '2001:db8:77::1'];
const ADDRESS = /203\.0\.113\.77|2001:0?db8:0?0?77/;
/** The same as bytes: the first address, and the first half of the second one's network. */
const PACKED = ['cb00714d', '20010db80077'].map((hex) => Buffer.from(hex, 'hex').toString('latin1'));
const CREDENTIALS = {
  'x-api-key': 'key-of-a-client',
  authorization: 'Bearer token-of-a-client',
  cookie: 'sid=cookie-of-a-client',
};
const CREDENTIAL = /(?:key|token|cookie)-of-a-client/;

const POLICIES = policyFile(
  'name: window, route: GET /window, identifier: ip, limit: 1, window: 366d, ban: { after: 1, within: 1h, for: 1h }',
  'name: bucket, route: GET /bucket, identifier: ip, limit: 1, window: 366d, algorithm: token-bucket',
  'name: sliding, route: GET /sliding, identifier: api-key, limit: 1, window: 366d, algorithm: sliding-window',
  'name: places, route: GET /places, identifier: api-key, concurrency: 1',
  'name: failures, route: GET /failures, identifier: api-key, limit: 1, window: 366d, count: failure',
);

/** Returns everything that Redis holds, names and values, in latin1. */
async function contents(redis: Redis): Promise<string> {
  const parts: string[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    const read: Readonly<Record<string, readonly [string, ...string[]]>> = {
      string: ['GET', key],
      hash: ['HGETALL', key],
      zset: ['ZRANGE', key, '0', '-1'],
      list: ['LRANGE', key, '0', '-1'],
      set: ['SMEMBERS', key],
      stream: ['XRANGE', key, '-', '+'],
    };
    const [command = '', ...args] = read[type] ?? [];
    if (command === '') throw new Error(`${key} is a ${type}, which this test cannot read`);
    const value: unknown = await redis.callBuffer(command, ...args);
    const flat = (part: unknown): string =>
      Array.isArray(part)
        ? part.map(flat).join(' ')
        : Buffer.isBuffer(part)
          ? part.toString('latin1')
          : String(part);
    parts.push(`${key} ${flat(value)}`);
  }
  return parts.join('\n');
}

t.test('nothing personal is in Redis, the log, the access log, the metrics and the admin API', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const upstream = await startUpstream(t, (req, res) =>
    res.writeHead(req.url === '/failures' ? 401 : 200).end(),
  );
  const folder = temporaryFolder(t);
  const files = { policies: join(folder, 'policies.yaml'), accessLog: join(folder, 'access.log') };
  writeFileSync(files.policies, POLICIES);
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_POLICIES: files.policies,
    GATEWAY_TRUSTED_PROXIES: 'loopback',
    GATEWAY_ACCESS_LOG: files.accessLog,
    LOG_LEVEL: 'trace',
  });
  const gateway = await launch(t, env);
  const admin = async (path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}${path}`)).text();
  const statuses = new Set<number>();
  const statusOf = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}${path}`, { headers })).status;
  const sendAll = async (): Promise<void> => {
    // The last path bans the address.
    for (const address of ADDRESSES)
      for (const path of ['/bucket', '/sliding', '/places', '/failures', '/free', '/a%00b', '/window'])
        for (const [name, value] of [...Object.entries(CREDENTIALS), ['x', 'y'] as const])
          for (let i = 0; i < 3; i++) {
            const headers = { 'x-forwarded-for': address, [name]: value };
            statuses.add(await statusOf(path, headers));
          }
    const garbage = `GET /window HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${ADDRESSES[0]}\r\nX-Api-Key : key-of-a-client\r\n\r\n`;
    await sendRaw(Number(env.GATEWAY_PORT), garbage).ended();
  };
  await sendAll();
  for (const address of ADDRESSES)
    await eventually(
      'the address is banned',
      () => statusOf('/free', { 'x-forwarded-for': address }),
      (status) => status === 429,
    );
  await redis.kill();
  await sendAll();
  await redis.restart();
  await eventually(
    'the store is back',
    () => admin('/readyz'),
    (text) => text.includes('"available"'),
  );
  await sendAll();
  await eventually(
    'a refusal is stored',
    () => admin('/api/decisions'),
    (text) => text.includes('"policy"'),
  );
  t.strictSame([...statuses].sort(), [200, 400, 401, 429]);

  const stored = await contents(redis.client);
  const shown = await Promise.all(
    ['/metrics', '/api/top', '/api/decisions', '/api/bans', '/api/traffic', '/api/policies'].map(admin),
  );
  t.equal(await gateway.stop(), 0);
  // Each place with something that shows that it was filled.
  const places: readonly (readonly [place: string, text: string, filled: RegExp])[] = [
    ['Redis', stored, /fg:.*window/],
    ['the log', gateway.output(), /the store is available again/],
    ['the access log', readFileSync(files.accessLog, 'latin1'), /"decision":"banned"/],
    ['metrics and admin API', shown.join('\n'), /"policy":"window"/],
  ];
  for (const [place, text, filled] of places) {
    t.match(text, filled, place);
    t.notMatch(text, ADDRESS, `${place}: no address`);
    for (const bytes of PACKED) t.notOk(text.includes(bytes), `${place}: no address as bytes`);
    t.notMatch(text, CREDENTIAL, `${place}: no credential`);
  }
});
