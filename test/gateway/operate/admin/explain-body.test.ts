/** `explain` of a body that can be read in two ways, where another policy denies the request before its body is read. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { EACH_STORE } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const TWO_USERS = '{"user":"a","user":"b"}';
const policies = policyFile(
  'name: tries, route: POST /login, identifier: ip, limit: 2, window: 366d',
  'name: users, route: POST /login, identifier: { body: user }, limit: 10, window: 366d',
);

for (const [store, start] of Object.entries(EACH_STORE))
  t.test(`${store}: explain and the client get the same status`, async (t) => {
    await insideLongWindow();
    const gateway = await startTestGateway(t, { policies, env: await start(t) });
    const admin = await startTestAdmin(t, gateway);
    const statusOf = async (body: string): Promise<number> => {
      const headers = { 'content-type': 'application/json' };
      return (await send(gateway.port, '/login', { method: 'POST', headers, body })).status;
    };
    const explained = async (): Promise<{ status: number; reason: string }> => {
      const { stdout } = await floodgateCommand([
        ...['explain', 'POST /login', '--data', TWO_USERS, '--from', '127.0.0.1'],
        ...['--gateway', admin, '--json'],
      ]);
      return JSON.parse(stdout) as { status: number; reason: string };
    };
    t.match(await explained(), { status: 400 }, 'nothing is used');
    t.equal(await statusOf(TWO_USERS), 400);
    for (const user of ['a', 'b']) t.equal(await statusOf(JSON.stringify({ user })), 200);
    t.equal(await statusOf(JSON.stringify({ user: 'c' })), 429);
    t.equal(await statusOf(TWO_USERS), 429, 'the body is not read');
    t.match(await explained(), { status: 429, reason: /^tries \(line \d+\) allows 2/ });
  });
