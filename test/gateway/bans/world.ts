/** Controls and rows for the tests of bans. */
import type { Test } from 'tap';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import { type Row, Rows } from '#gateway/bans/rows.ts';
import { CONTROL_KEYS } from '#gateway/bans/scripts.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Clock } from '#shared/clock.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';

/** The `ban` of a policy that bans for a minute after one denial. */
export const BAN = { bucket: 'login', after: 1, withinMs: 60_000, forMs: 60_000, growing: false };

export const identity = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));

export function newRows(t: Test, clock: Clock = Date.now, onShadows = (): void => undefined): Rows {
  const rows = new Rows({ clock, onShadows });
  t.teardown(() => rows.close());
  return rows;
}

export function newKnown(): KnownCounters {
  return new KnownCounters({ countersMax: 16 });
}

export function memoryControl(clock: Clock, rows: Rows): MemoryControl {
  return new MemoryControl({
    clock,
    rows,
    known: newKnown(),
    salt: '',
    historySince: () => null,
  });
}

export function storeControl(
  t: Test,
  { url }: RedisServer,
  onChange?: (row: Row) => Promise<void>,
): StoreControl {
  const control = new StoreControl(accessTo(url), 'salt', Date.now, onChange);
  t.teardown(() => control.close());
  return control;
}

export async function bothControls(t: Test) {
  return { memory: memoryControl(Date.now, newRows(t)), Redis: storeControl(t, await startRedis(t)) };
}

/** Writes bans by a policy into the store as if they had been made one after the other. */
export async function addBans({ client }: RedisServer, digests: readonly string[]): Promise<void> {
  const [rows, order, ends] = CONTROL_KEYS;
  const end = Date.now() + 3_600_000;
  const text = `${end} +login\npolicy login denied it 50 times within 600 s`;
  await client.hset(rows, ...digests.flatMap((digest) => [`ban ${digest}`, text]));
  await client.zadd(order, ...digests.flatMap((digest, i) => [i + 1, `ban ${digest}`]));
  await client.zadd(ends, ...digests.flatMap((digest) => [end, `ban ${digest}`]));
}
