/** Keys of an application that finds them without regard to case. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';

const ROW = 'name: items, route: "GET /items", identifier: api-key, limit: 3, window: 366d';

t.test('with ignoreCase, a ban is of all spellings', async (t) => {
  const policies = policyFile(ROW).replace('{ bearer: fbk_ }]', '{ bearer: fbk_ }], ignoreCase: true');
  const { port, gateway } = await startTestGateway(t, { policies });
  const identifier = { name: 'api-key', kind: 'credential', sources: [], ignoresCase: true } as const;
  const who = new Digester('salt of the tests').identify(identifier, 'FBK_OTHER');
  await gateway.control.ban(who, 600_000, 'why');
  t.equal((await send(port, '/items', { headers: { 'x-api-key': 'fbk_Other' } })).status, 429);
});
