/** `identifier: everyone` and requests in flight. What it counts is in test/policies/everyone.yaml. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';

const FILE = policyFile('name: open, route: "GET /open", identifier: everyone, concurrency: 2');

t.test('limits the requests in flight of all clients together', async (t) => {
  const waiting: (() => void)[] = [];
  const arrived: (() => void)[] = [];
  const upstream = await startUpstream(t, (_, res) => {
    waiting.push(() => res.end('done'));
    arrived.shift()?.();
  });
  const { port } = await startTestGateway(t, { upstream, policies: FILE, env: BEHIND_PROXY });
  const ask = (client: number) =>
    send(port, '/open', { headers: { 'x-forwarded-for': `192.0.2.${client}` } });
  const both = Promise.all([1, 2].map(() => new Promise<void>((resolve) => arrived.push(resolve))));
  const held = [ask(1), ask(2)];
  await both;
  t.equal((await ask(3)).status, 429, 'a third client is denied');
  for (const answer of waiting) answer();
  t.strictSame(
    (await Promise.all(held)).map(({ status }) => status),
    [200, 200],
  );
});
