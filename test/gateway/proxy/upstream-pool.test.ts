/** Regulars and newcomers in the queue of a pool. */
import t, { type Test } from 'tap';
import { createBounds } from '#gateway/bounds/bounds.ts';
import { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import { readConfig } from '#gateway/config.ts';
import type { SocketConnection } from '#gateway/proxy/socket-connection.ts';
import { Upstream } from '#gateway/proxy/upstream.ts';
import type { PoolCall } from '#gateway/proxy/upstream-pool.ts';
import { testClock } from '#test/support/clock.ts';

const PATIENCE_MS = 1000;

/** A pool with one place, which is used from the beginning. */
function startPool(t: Test, waitingMax = 1000) {
  const { now, advance } = testClock();
  const { config } = readConfig({
    GATEWAY_UPSTREAM_CONNECTIONS: '1',
    GATEWAY_WAITING: String(waitingMax),
    GATEWAY_CLIENT_SHARE: '1',
  });
  const log = { warn: () => undefined, info: () => undefined };
  const bounds = createBounds(config.bounds, { clock: now, log });
  const upstream = new Upstream({
    ...{ origin: 'http://127.0.0.1:9', timeoutMs: 1000, keepAliveMs: 1000, unreadTimeoutMs: 1000 },
    ...{
      replyBufferBytes: 1000,
      collectYoung: () => undefined,
      clock: now,
      bounds,
      log,
      openProtection: null,
    },
  });
  t.teardown(() => upstream.close());
  const pool = upstream.requests;
  const waiting = new Set<Call>();
  const served: Call[] = [];
  const displaced: Call[] = [];
  let inProgress: { readonly client: Client; readonly connection: SocketConnection } | null = null;

  class Call implements PoolCall {
    readonly client: Client;
    readonly isBehind: boolean;
    readonly priority: Priority;
    readonly retryable = true;
    readonly places = 1;
    readonly arrivedAt = now();

    constructor(client: Client, isBehind: boolean, priority: Priority) {
      this.client = client;
      this.isBehind = isBehind;
      this.priority = priority;
    }

    onConnection(connection: SocketConnection): void {
      waiting.delete(this);
      served.push(this);
      inProgress = { client: this.client, connection };
    }

    onDisplaced(): void {
      waiting.delete(this);
      displaced.push(this);
    }
  }

  /** @returns whether it has a place, or waits for one */
  const enter = (client: Client, who: 'regular' | 'newcomer', priority: Priority = 'normal'): boolean => {
    const call = new Call(client, who === 'newcomer', priority);
    waiting.add(call);
    const refusal = pool.enter(call);
    if (refusal !== null) waiting.delete(call);
    return refusal === null;
  };
  let clients = 0;
  const enterEach = (count: number, who: 'regular' | 'newcomer', priority?: Priority): number =>
    Array.from({ length: count }, () => enter(new Client(`client ${clients++}`), who, priority)).filter(
      Boolean,
    ).length;
  const release = (): void => {
    const { client, connection } = inProgress ?? {};
    inProgress = null;
    if (client !== undefined && connection !== undefined) pool.release(connection, client);
  };
  enterEach(1, 'regular');
  served.pop();
  return {
    ...{ enter, enterEach, release, waiting, served, displaced, bounds, pool },
    /** Serves one call, and ends the waits that have lasted too long. */
    step(ms: number): void {
      release();
      advance(ms);
      for (const call of waiting) {
        if (now() - call.arrivedAt < PATIENCE_MS) continue;
        pool.leave(call);
        waiting.delete(call);
      }
    },
  };
}

const newcomersOf = (calls: Iterable<PoolCall>): number =>
  [...calls].filter(({ isBehind }) => isBehind).length;

t.test('regulars go first, and every tenth place is for a newcomer', async (t) => {
  const { enterEach, release, served } = startPool(t);
  enterEach(8, 'newcomer', 'low');
  enterEach(15, 'newcomer');
  enterEach(20, 'regular');
  enterEach(1, 'newcomer', 'high');
  for (let i = 0; i < 44; i++) release();
  const order = served.map(({ priority, isBehind }) => `${priority[0]}${isBehind ? 'n' : 'r'}`).join(' ');
  const regulars = (count: number): string => 'nr '.repeat(count);
  const expected = `hn ${regulars(9)}nn ${regulars(9)}nn ${regulars(2)}${'nn '.repeat(13)}${'ln '.repeat(8)}`;
  t.equal(order, expected.trim(), 'a priority goes before both');
});

t.test('when regulars need all places, newcomers do not starve', async (t) => {
  const { enterEach, step, served, waiting, bounds, pool } = startPool(t);
  for (let i = 0; i < 600; i++) {
    enterEach(2, 'regular');
    enterEach(5, 'newcomer');
    step(100);
  }
  t.equal(served.length, 600);
  t.equal(newcomersOf(served), 60);
  for (let i = 0; i < 10; i++) step(1000);
  t.equal(waiting.size + pool.waiting + bounds.waiting.held + bounds.upstream_connections.held, 0);
});

t.test('when regulars need half of the places, all of them pass, and newcomers have the rest', async (t) => {
  const { enter, step, served, waiting, bounds, pool } = startPool(t);
  // Each address is that of regulars and of newcomers, such as one with and without a proven key.
  const clients = Array.from({ length: 7 }, (_, i) => new Client(`client ${i}`));
  const next = (i: number): Client => clients[i % clients.length] ?? new Client('');
  for (let i = 0; i < 600; i++) {
    if (i % 2 === 0) enter(next(i), 'regular');
    for (let n = 0; n < 3; n++) enter(next(i + n), 'newcomer');
    step(100);
  }
  const newcomers = newcomersOf(served);
  t.equal(served.length, 600);
  t.equal(newcomersOf(waiting), waiting.size, 'no regular waits');
  t.equal(newcomers, 300);
  for (let i = 0; i < 10; i++) step(1000);
  t.equal(waiting.size + pool.waiting + bounds.waiting.held + bounds.upstream_connections.held, 0);
});

t.test('in a full queue regulars take the places of newcomers, but not the last tenth', async (t) => {
  const { enterEach, waiting, displaced } = startPool(t, 20);
  t.equal(enterEach(30, 'newcomer'), 20);
  t.equal(enterEach(30, 'regular'), 18);
  t.equal(newcomersOf(displaced), 18);
  t.equal(newcomersOf(waiting), 2);
  t.equal(enterEach(1, 'newcomer'), 0, 'a newcomer takes no place');
  t.equal(enterEach(3, 'newcomer', 'high'), 3, 'one of a higher priority does');
  t.equal(newcomersOf(displaced), 20);
  t.equal(displaced.length, 21, 'first that of newcomers');
});
