/** Marks of upgrades and in the access log. Which requests are marked is in test/policies/mode.yaml. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send, values } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

/** Replies with the marks that it receives, one a line. */
const application = (t: Test) =>
  startUpstream(t, (req, res) => res.end(values(req.rawHeaders, 'x-gateway-over').join('\n')));

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
