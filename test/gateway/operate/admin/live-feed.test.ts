/** Tests the event stream of the page: the number of listeners, their events, and listeners that do not read. */
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { SPAN_MS, TrafficHistory } from '#gateway/operate/admin/history.ts';
import { LISTENERS_MAX, LiveFeed, type LiveFeedOptions } from '#gateway/operate/admin/live-feed.ts';
import { counter } from '#gateway/part/sample.ts';
import type { Clock } from '#shared/clock.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

async function start(t: Test, rows: readonly string[], token: string | null = null) {
  const gateway = await startTestGateway(t, { policies: policyFile(...rows) });
  return { gateway, admin: await startTestAdmin(t, gateway, { token }) };
}

const ONE = 'name: one, route: GET /one, identifier: ip, limit: 2, window: 366d';

interface Heard {
  readonly name: string;
  readonly data: Record<string, unknown>;
}

/** Collects the events until the test ends. */
async function follow(t: Test, admin: string, headers: Record<string, string> = {}): Promise<Heard[]> {
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const reply = await fetch(`${admin}/api/live`, { headers, signal: stop.signal });
  t.equal(reply.status, 200);
  t.equal(reply.headers.get('content-type'), 'text/event-stream');
  const heard: Heard[] = [];
  const read = async (): Promise<void> => {
    let rest = '';
    for await (const chunk of reply.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const parts = (rest + chunk).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const [, name = '', data = 'null'] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
        heard.push({ name, data: JSON.parse(data) });
      }
    }
    heard.push({ name: 'end', data: {} });
  };
  read().catch(() => undefined);
  return heard;
}

t.test('the last hour first, then new values every second', async (t) => {
  const { gateway, admin } = await start(t, [ONE]);
  const send = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await (await fetch(`${gateway.origin}/one`)).arrayBuffer();
  };
  await send(3);
  const heard = await follow(t, admin);
  await until(() => heard.length > 0);
  t.equal(heard[0]?.name, 'traffic');
  await until(() => heard.some(({ name }) => name === 'second'));
  await send(4);
  // Requests from before the first listener are in the first event.
  const denied = (): number => {
    const counts = heard.flatMap(({ name, data }) => {
      const { series } = (name === 'traffic' ? data : data.grown) as { series: Record<string, number[]> };
      return series['floodgate_policy_decisions_total one denied'] ?? [];
    });
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await until(() => denied() >= 5);
  t.equal(denied(), 5, 'each request is counted once');
  const before = heard.length;
  await until(() => heard.length > before + 1);
  t.equal(denied(), 5);
  await until(() => heard.some(({ data }) => ((data.denials ?? []) as unknown[]).length > 0));
  const denials = heard.flatMap(({ data }) => (data.denials ?? []) as { id: string; policy: string }[]);
  t.equal(denials[0]?.policy, 'one');
  t.equal(new Set(denials.map(({ id }) => id)).size, denials.length, 'each refusal is sent once');
  await until(() => heard.some(({ data }) => ((data.limited ?? []) as unknown[]).length > 0));
  t.match(heard.at(-1)?.data, { processes: 1, store: { kind: 'memory', available: true, awaySince: null } });
});

t.test('the number of listeners is bounded; one that leaves frees its place', async (t) => {
  const { admin } = await start(t, [ONE]);
  const open = async () => {
    const stop = new AbortController();
    // The reply is returned, because an unreferenced one would be closed.
    const reply = await fetch(`${admin}/api/live`, { signal: stop.signal });
    t.teardown(() => stop.abort());
    return { stop, reply };
  };
  const all = await Promise.all(Array.from({ length: LISTENERS_MAX }, open));
  t.ok(all.every(({ reply }) => reply.status === 200));
  const { reply: refused } = await open();
  t.equal(refused.status, 503);
  t.match(await refused.json(), { message: /close one/ });
  all[0]?.stop.abort();
  await until(async () => (await open()).reply.status === 200);
  t.equal(all.filter(({ reply }) => reply.bodyUsed).length, 0);
});

/** A separate feed. */
function feedOf(clock: Clock, families: LiveFeedOptions['families']): LiveFeed {
  return new LiveFeed({
    clock,
    history: new TrafficHistory(clock()),
    storeKind: 'memory',
    processes: async () => [],
    exchangeDenied: async () => [],
    families,
    listDecisions: async () => [],
    policyVersion: async () => '',
    addresses: null,
  });
}

/** Starts a feed that has a lot of text each time that it is read. `added` has all of its listeners, also those that it has cut. */
async function startFeed(t: Test) {
  let readings = 0;
  const grown = async () => {
    const value = ++readings;
    const names = Array.from({ length: 400 }, (_, i) => `${i}${'x'.repeat(10_000)}`);
    return [
      families(
        names.map((policy) =>
          counter('floodgate_policy_decisions_total', '', value, { policy, decision: 'denied' }),
        ),
      ),
    ];
  };
  const feed = feedOf(Date.now, grown);
  const added: ServerResponse[] = [];
  const server = createServer((_req, res) => {
    added.push(res);
    void feed.add(res, () => true);
  });
  t.teardown(() => feed.close());
  return { feed, added, port: await listen(t, server) };
}

t.test('while no page is open, the counters are read once in each span, at its start', async (t) => {
  const readAt: number[] = [];
  let aheadMs = 0;
  const clock = () => Date.now() + aheadMs;
  // After a reading, the next second begins at once, and the next span a second later.
  const skip = () => {
    aheadMs += SPAN_MS - (clock() % SPAN_MS) - 1050;
  };
  skip();
  const feed = feedOf(clock, async () => {
    readAt.push(clock());
    skip();
    return [];
  });
  t.teardown(() => feed.close());
  feed.schedule();
  await until(() => readAt.length === 3);
  const spans = readAt.map((at) => Math.round(at / SPAN_MS));
  t.equal(new Set(spans).size, 3, `one reading in each span: ${readAt}`);
});

t.test('cuts a listener that does not read', async (t) => {
  const { feed, added, port } = await startFeed(t);
  const [idle, reader] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  t.teardown(() => void [idle, reader].map((socket) => socket.destroy()));
  idle.pause().on('error', () => undefined);
  let bytes = 0;
  reader.on('data', (chunk) => {
    bytes += chunk.length;
  });
  for (const socket of [idle, reader]) socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await until(() => added.length === 2);
  await until(() => feed.size === 1);
  const before = bytes;
  await until(() => bytes > before);
  reader.destroy();
  await until(() => feed.size === 0);
});

t.test('signing out ends the feed', async (t) => {
  const { admin } = await start(t, [ONE], 'a secret');
  const reply = await fetch(`${admin}/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: 'a secret' }),
  });
  const { proof } = (await reply.json()) as { proof: string };
  const cookie = reply.headers.get('set-cookie')?.split(';')[0] ?? '';
  const headers = { cookie, 'x-floodgate-proof': proof };
  const heard = await follow(t, admin, headers);
  const program = await follow(t, admin, { authorization: 'Bearer a secret' });
  await until(() => heard.length > 0 && program.length > 0);
  await fetch(`${admin}/api/session`, { method: 'DELETE', headers });
  await until(() => heard.at(-1)?.name === 'end');
  const before = program.length;
  await until(() => program.length > before);
});
