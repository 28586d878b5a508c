/** A reload that begins or ends the protection while requests wait. */
import { setImmediate as endOfTick } from 'node:timers/promises';
import t from 'tap';
import { createBounds } from '#gateway/bounds/bounds.ts';
import { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import { readConfig } from '#gateway/config.ts';
import { Protection } from '#gateway/protection/protection.ts';
import type { SocketConnection } from '#gateway/proxy/socket-connection.ts';
import { Upstream } from '#gateway/proxy/upstream.ts';
import { testClock } from '#test/support/clock.ts';

class Call {
  readonly client: Client;
  readonly priority: Priority;
  readonly isBehind = false;
  readonly retryable = true;
  readonly places = 1;
  connection: SocketConnection | null = null;

  constructor(address: string, priority: Priority) {
    this.client = new Client(address);
    this.priority = priority;
  }

  onConnection(connection: SocketConnection): void {
    this.connection = connection;
  }

  onDisplaced(): void {
    throw new Error('the queue has room');
  }
}

t.test('when protection ends, waiting requests pass, and nothing lowers the bound again', async (t) => {
  const { now, advance } = testClock();
  const { config } = readConfig({});
  const log = { warn: () => undefined, info: () => undefined };
  const bounds = createBounds(config.bounds, { clock: now, log });
  const upstream = new Upstream({
    ...{ origin: 'http://127.0.0.1:9', timeoutMs: 1000, keepAliveMs: 1000, unreadTimeoutMs: 1000 },
    ...{ replyBufferBytes: 1000, collectYoung: () => undefined, clock: now, bounds, log },
    openProtection: (bound) => new Protection({ ...bound, onOverload: () => undefined }),
  });
  t.teardown(() => upstream.close());
  const inUse = bounds.upstream_connections;
  t.equal(upstream.protection, null);

  upstream.protect('on');
  const { protection } = upstream;
  if (!(protection instanceof Protection)) throw new Error('it is protected');
  upstream.protect('on');
  t.equal(upstream.protection, protection, 'the state is kept');

  const enter = (count: number, priority: Priority): Call[] =>
    Array.from({ length: count }, (_, i) => {
      const call = new Call(`192.0.2.${i}`, priority);
      t.equal(upstream.requests.enter(call), null);
      return call;
    });
  const replies = (ms: number): void => {
    for (let i = 0; i < 40; i++) {
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
        protection.measure(new Client(address), ms, true);
      advance(500);
    }
  };
  enter(20, 'normal');
  replies(4000);
  t.equal(inUse.limit, 10);
  t.equal(inUse.perClient, 3);
  const waiting = [...enter(5, 'low'), ...enter(5, 'high')];
  t.ok(waiting.every(({ connection }) => connection === null));
  t.equal(upstream.requests.waitingIn({ priority: 'low', isBehind: false }), 5);

  upstream.protect(null);
  await endOfTick();
  t.ok(waiting.every(({ connection }) => connection !== null));
  t.equal(inUse.limit, inUse.total);
  t.equal(inUse.perClient, 64);
  advance(3000);
  for (const ms of [10, 4000]) replies(ms);
  t.equal(inUse.limit, inUse.total, 'replies to earlier requests do not change the limit');
  t.equal(protection.isLowered, false);
  upstream.protect('shadow');
  t.match(upstream.protection, { limit: inUse.total }, 'measuring starts again');
});
