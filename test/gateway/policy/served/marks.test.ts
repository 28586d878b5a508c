/** Marks of upgrades and in the access log. Which requests are marked is in test/policies/mode.yaml. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send, values } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

/** Replies with the marks that it receives, one a line. */
const application = (t: Test) =>
  startUpstream(t, (req, res) => res.end(values(req.rawHeaders, 'x-gateway-over').join('\n')));

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
