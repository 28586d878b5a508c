/** Tests one real server: the number of commands, their guarantees, and the errors without a connection. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import t from 'tap';
import { storeScript } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { startRedis } from '#test/support/redis.ts';
import { endRedis, launchRedis, memoryOnly } from '#test/support/redis-process.ts';
import { COUNT, fault, load, storeAt } from '#test/support/store.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

t.test('sends keys and arguments, and returns the reply', async (t) => {
  const redis = await startRedis(t);
  const changes: boolean[] = [];
  const store = storeAt(t, redis.url, { onChange: (ready) => changes.push(ready) });
  t.equal(store.ready, false);
  t.equal((await fault(store.run(COUNT, ['k'], ['f']))).kind, 'disconnected', 'not connected yet');
  await store.connect();
  t.equal(store.ready, true);
  t.equal(store.slotOf('any'), null);
  const echo = storeScript('return { KEYS[1], KEYS[2], ARGV[1], #ARGV, redis.call("PING").ok }');
  t.strictSame(await store.run(echo, ['a', 'b'], ['c', 'd']), ['a', 'b', 'c', 2, 'PONG']);
  store.close();
  t.equal(store.ready, false);
  t.strictSame(changes, [true, false]);
});

t.test('a server on a Unix socket, and a socket without a server', async (t) => {
  const path = join(temporaryFolder(t), 'redis.sock');
  const url = `unix:${path}?db=3&password=secret`;
  const store = storeAt(t, url);
  t.ok((await fault(store.connect())).message.includes(path), 'the error names the path');
  const server = await launchRedis(
    [...memoryOnly(0), '--unixsocket', path, '--requirepass', 'secret'],
    /ready to accept connections/i,
  );
  t.teardown(() => endRedis(server));
  await until(() => store.ready, 'connected');
  t.equal(await store.run(COUNT, ['k'], ['f']), 1);
  const redis = new Redis({ path, password: 'secret', db: 3 });
  t.teardown(() => redis.disconnect());
  t.equal(await redis.hget('k', 'f'), '1', 'in the database of the address');
});

t.test('a command whose connection breaks says so, not how the library is set', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  redis.freeze();
  const waiting = fault(store.run(COUNT, ['k'], ['f']));
  await redis.kill();
  const { kind, message } = await waiting;
  t.equal(kind, 'disconnected');
  t.match(message, /: the connection broke before the answer came$/);
});

t.test('loads an unknown script and executes it once', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  t.equal(await store.run(COUNT, ['k'], ['f']), 1);
  await redis.client.script('FLUSH');
  t.strictSame(
    await Promise.all(['a', 'b', 'c'].map((field) => store.run(COUNT, ['k'], [field]))),
    [1, 1, 1],
    'every call that was in flight succeeds',
  );
  const stats = await redis.client.info('commandstats');
  t.match(stats, /cmdstat_eval:calls=4/, 'the script’s text is sent only when it is missing');
  await store.run(COUNT, ['k'], ['d']);
  t.match(await redis.client.info('commandstats'), /cmdstat_eval:calls=4/);
});

t.test('uses the database of the address, also after a reconnect', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, `${redis.url}/3`);
  await store.connect();
  await store.run(COUNT, ['k'], ['f']);
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await until(() => !store.ready);
  await until(() => store.ready);
  await store.run(COUNT, ['k'], ['f']);
  await redis.client.select(3);
  t.equal(await redis.client.hget('k', 'f'), '2');
});

t.test('killed under load: executes nothing twice, and recovers by itself', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  const calls = load(store, 'k');
  await calls.untilMore(200);
  for (let i = 0; i < 5; i++) {
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await calls.untilMore(200);
  }
  await calls.stop();
  t.strictSame(calls.wrong, []);
  const counted = Object.entries(await redis.client.hgetall('k'));
  t.ok(counted.every(([, count]) => count === '1'));
  const fields = new Set(counted.map(([field]) => field));
  t.ok(
    calls.acknowledged.every((field) => fields.has(field)),
    'acknowledged calls are counted',
  );
  t.ok(
    counted.length <= calls.acknowledged.length + calls.rejected.size,
    'no other call is counted but rejected ones',
  );
});

t.test('a server that stops answering: all calls reject, and are not sent again', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url, { silenceMs: 200 });
  await store.connect();
  redis.freeze();
  const calls = ['a', 'b', 'c'].map((field) => store.run(COUNT, ['k'], [field]));
  for (const call of calls) t.equal((await fault(call)).kind, 'timeout');
  await until(() => !store.ready);
  t.match(store.whyDown().message, /stopped answering|closed/);
  redis.thaw();
  await until(() => store.ready);
  await store.run(COUNT, ['k'], ['d']);
  t.ok(Object.values(await redis.client.hgetall('k')).every((count) => count === '1'));
});

t.test('leaves an old primary that became a replica, and uses it again as a primary', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  await redis.client.replicaof('127.0.0.1', await freePort());
  await t.rejects(store.run(COUNT, ['k'], ['f']), { message: /replica/ });
  t.equal(store.ready, false);
  t.match(store.whyDown().message, /READONLY/);
  await redis.client.replicaof('NO', 'ONE');
  await until(() => store.ready);
  t.equal(await store.run(COUNT, ['k'], ['f']), 1);
});

t.test('gives the reason for each missing connection', async (t) => {
  const redis = await startRedis(t);
  const told = async (url: string, sentence: RegExp): Promise<void> => {
    const store = storeAt(t, url);
    await t.rejects(store.connect(), { name: 'StoreFault', message: sentence }, String(sentence));
    t.equal(store.ready, false);
    t.match(store.whyDown().message, sentence, 'the reason is still known later');
    t.type(store.whyDown(), StoreFault);
    t.type(store.whyDown().cause, Error);
    store.close();
  };
  await told(
    `redis://127.0.0.1:${await freePort()}`,
    /127\.0\.0\.1:\d+: nothing listens there \(.*ECONNREFUSED/,
  );
  await told(
    'redis://no-such-host.invalid',
    /no-such-host\.invalid:6379: getaddrinfo (?:ENOTFOUND|EAI_AGAIN)/,
  );
  await told(redis.url.replace('//', '//nobody:wrong@'), /does not accept the user and password .*WRONGPASS/);
  await told(`${redis.url}/99`, /DB index is out of range/);

  const locked = await startRedis(t, ['--requirepass', 'secret'], 'secret');
  await told(locked.url, /asks for a password, and GATEWAY_REDIS_URL has none .*NOAUTH/);
  await told(locked.url.replace('//', '//:wrong@'), /does not accept the user and password .*WRONGPASS/);

  await redis.client.acl('SETUSER', 'mute', 'on', '>x', '-@all');
  await told(redis.url.replace('//', '//mute:x@'), /lacks a permission .*NOPERM/);

  const full = await startRedis(t, ['--maxclients', '1']);
  await full.client.ping();
  await told(full.url, /maxclients/);

  const web = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  const webPort = await listen(t, web);
  await told(
    `redis://127.0.0.1:${webPort}`,
    /^127\.0\.0\.1:\d+: the server there is not Redis \(Unknown RESP type[^.]*\)$/,
  );

  const closing = createServer((socket) => socket.destroy());
  await told(
    `redis://127.0.0.1:${await listen(t, closing)}`,
    /closes new connections before it has answered; has it reached its maxclients\?/,
  );
});

t.test('a server that answers every command with an error is asked less and less often', async (t) => {
  const connectedAt: number[] = [];
  const server = createServer((socket) => {
    connectedAt.push(performance.now());
    socket.on('error', () => undefined).on('data', () => socket.write('-ERR not today\r\n'.repeat(10)));
  });
  const port = await listen(t, server);
  const store = storeAt(t, `redis://127.0.0.1:${port}`);
  t.match((await fault(store.connect())).message, /not today/);
  await until(() => connectedAt.length >= 8);
  const [before = 0, last = 0] = connectedAt.slice(6, 8);
  t.ok(last - before > 1500, `${last - before} ms, longer than for a server that is away`);
});
