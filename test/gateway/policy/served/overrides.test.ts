import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = `plan: { header: x-plan }\n${policyFile(
  'name: all, route: "GET /a", identifier: ip, limit: 3, window: 366d, overrides: [{ for: { plan: gold }, limit: 6 }, { for: { address: 10.0.0.0/8 }, limit: 2 }]',
  'name: keys, route: "GET /keys", identifier: api-key, limit: 3, window: 366d, overrides: [{ for: { plan: gold }, limit: 6 }]',
)}`;

t.test('the application gets the plan of a trusted proxy, and two plans are refused', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, { policies: FILE, env: BEHIND_PROXY });
  const { body } = await send(port, '/a', { headers: { 'x-plan': 'gold' } });
  t.ok(JSON.parse(body.toString()).headers.includes('x-plan'));
  const two = await send(port, '/a', { headers: ['host', 'a', 'x-plan', 'gold', 'X-Plan', 'free'] });
  t.match([two.status, two.body.toString()], [400, /two different plans/]);
});

t.test('removes and ignores the plan that a client names', async (t) => {
  await insideLongWindow();
  const { port, log } = await startTestGateway(t, { policies: FILE });
  t.match(log, [{}, { msg: /no proxy is trusted to name them; set GATEWAY_TRUSTED_PROXIES/ }]);
  const replies = [];
  for (let i = 0; i < 4; i++) replies.push(await send(port, '/a', { headers: { 'X-Plan': 'gold' } }));
  t.strictSame(
    replies.map(({ status }) => status),
    [200, 200, 200, 429],
  );
  t.notMatch(replies[0]?.body.toString().toLowerCase(), 'x-plan');
  const uncovered = await send(port, '/other', { headers: { 'X-Plan': 'gold' } });
  t.notMatch(uncovered.body.toString().toLowerCase(), 'x-plan', 'on uncovered routes too');
});
