/** The header of `mode: mark`, its metric and its log line. Which requests are marked is in test/policies/mode.yaml. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send, values } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { sendRaw } from '#test/support/raw.ts';
import { onEachStore } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const MARKED = 'floodgate_policy_decisions_total';

/** Replies with the marks that it receives, one a line. */
const application = (t: Test) =>
  startUpstream(t, (req, res) => res.end(values(req.rawHeaders, 'x-gateway-over').join('\n')));

t.test('all gateways together count what they mark', async (t) => {
  await insideLongWindow();
  const upstream = (await application(t)).origin;
  const policies = policyFile(
    'name: slow, route: "GET /*", identifier: ip, limit: 7, window: 366d, mode: mark',
    'name: hard, route: "GET /*", identifier: ip, limit: 20, window: 366d',
  );
  await onEachStore(t, { upstream, policies }, async (t, one, two) => {
    await Promise.all(Array.from({ length: 30 }, (_, i) => send((i % 2 === 0 ? one : two).port, '/')));
    // A gateway that has marked nothing has no count for the policy.
    const counted = (policy: string, decision = 'marked'): number =>
      [...new Set([one, two])]
        .map(({ sample }) => Math.max(0, sample(MARKED, { policy, decision })))
        .reduce((all, own) => all + own);
    t.strictSame([counted('slow'), counted('hard')], [13, 0]);
    t.strictSame([counted('slow', 'shadow_denied'), counted('slow', 'denied')], [0, 0]);
  });
});

t.test('clients can neither forge the header nor have it removed', async (t) => {
  await insideLongWindow();
  const upstream = (await application(t)).origin;
  for (const env of [{}, BEHIND_PROXY])
    for (const [over, row] of [
      ['', 'name: open, route: "GET /*", identifier: everyone, limit: 90, window: 366d, mode: mark'],
      ['shut', 'name: shut, route: "GET /*", identifier: everyone, limit: 1, window: 366d, mode: mark'],
      ['', 'name: none, route: "GET /elsewhere", identifier: everyone, limit: 1, window: 366d'],
    ]) {
      const { port } = await startTestGateway(t, { upstream, env, policies: policyFile(row ?? '') });
      await send(port, '/');
      for (const headers of [
        { 'x-gateway-over': 'forged' },
        { 'X-GATEWAY-OVER': ['forged', 'again'] },
        { 'x-gateway-over': 'forged', connection: 'x-gateway-over' },
        { connection: 'close, X-Gateway-Over' },
      ])
        t.equal((await send(port, '/', { headers })).body.toString(), over, JSON.stringify(headers));
    }
});

t.test('marks reach the application in an upgrade', async (t) => {
  await insideLongWindow();
  const upstream = await application(t);
  upstream.server.on('upgrade', (req, socket) => {
    const over = values(req.rawHeaders, 'x-gateway-over').join();
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nover=${over};`,
    );
  });
  const policies = policyFile(
    'name: few, route: "GET /*", identifier: everyone, limit: 1, window: 366d, mode: mark',
  );
  const { port } = await startTestGateway(t, { upstream, policies });
  await send(port, '/');
  const fields = ['Host: app.test', 'Connection: Upgrade, X-Gateway-Over', 'Upgrade: websocket', '', ''];
  const client = sendRaw(port, ['GET /ws HTTP/1.1', ...fields].join('\r\n'));
  t.match(await client.until(/over=.*;/), /over=few;$/);
  client.socket.destroy();
});

t.test('the access log names the marking policies of a request', async (t) => {
  await insideLongWindow();
  const file = join(temporaryFolder(t), 'access.log');
  const { port } = await startTestGateway(t, {
    upstream: await application(t),
    policies: policyFile(
      'name: few, route: "GET /*", identifier: everyone, limit: 1, window: 366d, mode: mark',
    ),
    env: { GATEWAY_ACCESS_LOG: file },
  });
  for (let i = 0; i < 2; i++) await send(port, '/');
  await until(() => jsonLines(file).length === 2);
  t.match(jsonLines(file), [
    { decision: 'allow', marked: [] },
    { decision: 'allow', marked: ['few'] },
  ]);
});
