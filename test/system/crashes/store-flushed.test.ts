/** A Redis that has lost everything: what operators had done still holds, and they can still end it. */
import t from 'tap';
import { eventually } from '#test/support/gateway-process.ts';
import { startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';

const redis = await startRedis(t);
const operator = await startOperator(t, { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' });

t.test('bans and shadows are there again, and end when they are told to', async (t) => {
  const all = (status: number) => (seen: readonly number[]) => seen.every((one) => one === status);
  const items = () => operator.send(6);
  const banned = () => operator.send(6, '/free', { 'x-api-key': 'b'.repeat(32) });

  t.equal((await operator.ask('shadow', 'items', '--for', '1h')).code, 0);
  await eventually('the policy denies nothing', items, all(200));
  const ban = ['b'.repeat(32), '--key'];
  t.equal((await operator.ask('ban', ...ban, '--for', '1h')).code, 0);
  await eventually('the key is banned', banned, all(429));

  await redis.client.flushall();
  await eventually(
    'Redis knows of them again',
    () => redis.client.zrange('fg:{control}:ends', '0', '-1', 'WITHSCORES'),
    ({ length }) => length === 4,
  );
  const ends = await redis.client.zrange('fg:{control}:ends', '0', '-1', 'WITHSCORES');
  for (const [name, end] of [ends.slice(0, 2), ends.slice(2)]) {
    const ms = Number(end) - Date.now();
    t.ok(ms > 3_000_000 && ms < 3_600_000, `${name} keeps its end`);
  }
  t.ok(all(200)(await items()), 'the policy is still in shadow mode');
  t.ok(all(429)(await banned()), 'the client is still banned');

  // The salt is there again with the next heartbeat.
  const unbanned = await eventually(
    'it can be asked',
    () => operator.ask('unban', ...ban),
    ({ code }) => code === 0,
  );
  t.match(unbanned, { document: { changed: true } });
  t.match(await operator.ask('unshadow', 'items'), { code: 0 });
  await eventually(
    'the key is let in',
    () => operator.send(1, '/free', { 'x-api-key': 'b'.repeat(32) }),
    all(200),
  );
  await eventually('the policy denies', items, all(429));
});

t.test('all workers know at once whom an operator bans or lets in, even if Redis dies then', async (t) => {
  for (const end of ['is killed', 'freezes']) {
    /** Each on a connection of its own, so that both workers get some. */
    const statuses = async () => new Set(await operator.send(20, '/free', { connection: 'close' }));

    // A Redis that was killed has the salt again with the next heartbeat.
    await eventually(
      'the client can be banned',
      () => operator.ask('ban', '127.0.0.1', '--for', '1h'),
      ({ code }) => code === 0,
    );
    t.strictSame(await statuses(), new Set([429]));
    t.match(await operator.ask('unban', '127.0.0.1'), { code: 0, document: { changed: true } });
    if (end === 'freezes') redis.freeze();
    else await redis.kill();
    t.strictSame(await statuses(), new Set([200]), end);
    const asked = await operator.ask('inspect', '127.0.0.1');
    t.match(asked, { code: 3, stderr: /the store is unavailable/ });
    if (end === 'freezes') redis.thaw();
    else await redis.restart();
    await eventually(
      'Redis can be asked again',
      () => operator.ask('bans'),
      ({ code }) => code === 0,
    );
    t.strictSame(await statuses(), new Set([200]), `Redis ${end} and is back`);
  }
});
