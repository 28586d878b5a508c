import t from 'tap';
import type { Finding } from '#gateway/operate/doctor/findings.ts';
import { readPage } from '#test/docs/pages.ts';
import { startProduct } from '#test/docs/product.ts';
import { startShell } from '#test/docs/shell.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { ASKING_EXAMPLES, askingProxyNames, startAskingProxy } from '#test/support/asking-proxies.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { inOneWindow } from '#test/support/window.ts';

const page = readPage('docs/behind-another-proxy.md');
const examples = readPage(`${ASKING_EXAMPLES}/README.md`);
const blockOf = ({ blocks }: typeof page, words: string): string =>
  blocks.find(({ text }) => text.includes(words))?.text ?? '';

t.test('the examples: each proxy started by its command, one limit for all of them', async (t) => {
  const application = await startUpstream(t);
  const decision = await freePort();
  const command = blockOf(examples, 'npm run start:gateway').replace('9091', String(decision));
  await startProduct(t, command);
  const shell = startShell(t, temporaryFolder(t));
  const loop = blockOf(examples, 'for i in');
  const ports: number[] = [];
  for (const name of askingProxyNames)
    ports.push((await startAskingProxy(t, name, { decision, application: application.port })).port);
  const statuses = await inOneWindow(60_000, async () => {
    const outputs: string[] = [];
    for (const port of ports) outputs.push(await shell.run(loop.replace(':8000', `:${port}`)));
    return outputs.flatMap((output) => output.trim().split('\n'));
  });
  const asked = 6 * askingProxyNames.length;
  t.strictSame(statuses, [...Array(5).fill('200'), ...Array(asked - 5).fill('429')]);
});

t.test('the page: its command starts a gateway, its question is answered with yes', async (t) => {
  const decision = await freePort();
  const started = await startProduct(
    t,
    blockOf(page, 'npm run start:gateway').replace('9091', String(decision)),
  );
  t.match(started.output(), `decisions on http://127.0.0.1:${decision}`);
  const question = `${blockOf(page, 'GET /forward-auth').trim().replaceAll('\n', '\r\n')}\r\nConnection: close\r\n\r\n`;
  t.match(await sendRaw(decision, question).ended(), /^HTTP\/1\.1 200 /);
});

t.test('doctor sees through each of them', async (t) => {
  const application = await startUpstream(t);
  const decision = await freePort();
  const gateway = await startTestGateway(t, {
    upstream: application,
    env: { GATEWAY_DECISION_PORT: String(decision), GATEWAY_TRUSTED_PROXIES: '1' },
  });
  const admin = await startTestAdmin(t, gateway);
  for (const name of askingProxyNames) {
    const { port } = await startAskingProxy(t, name, { decision, application: application.port });
    const site = `http://127.0.0.1:${port}`;
    const { stdout } = await floodgateCommand(['doctor', '--json', '--gateway', admin, '--public', site]);
    t.match(
      JSON.parse(stdout).findings.filter(({ check }: Finding) => /^(?:public|trusted)/.test(check)),
      [
        {
          check: 'public-address',
          ok: true,
          message: `the server at ${site} is a proxy that asks this gateway about requests`,
        },
        { check: 'trusted-proxies', ok: true },
      ],
      name,
    );
  }
});

t.test("Caddy's short form", async (t) => {
  const application = await startUpstream(t);
  const decision = await freePort();
  await startProduct(t, blockOf(examples, 'npm run start:gateway').replace('9091', String(decision)));
  const short = blockOf(page, 'forward_auth').replace('127.0.0.1:9091', `127.0.0.1:${decision}`);
  const { port } = await startAskingProxy(t, 'caddy', { decision, application: application.port }, (text) =>
    text.replace(/reverse_proxy 127.0.0.1:\d+ \{[\s\S]*?\n\t\t\}\n/, short),
  );
  const statuses = await inOneWindow(60_000, async () => {
    const asked: number[] = [];
    for (let i = 0; i < 6; i++) asked.push((await fetch(`http://127.0.0.1:${port}/api/x`)).status);
    return asked;
  });
  t.strictSame(statuses, [200, 200, 200, 200, 200, 429]);
});
