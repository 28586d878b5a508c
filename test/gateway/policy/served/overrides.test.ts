/** The header of plans, and a file of overrides, on a running gateway. What they count is in test/policies/overrides.yaml. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
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

t.test('uses an edited file of overrides within seconds, and keeps the counters', async (t) => {
  const folder = temporaryFolder(t);
  const row = 'name: a, route: GET /a, identifier: ip, limit: 1, window: 366d, overridesFile: limits.txt';
  writeFileSync(join(folder, 'policies.yaml'), `${policyFile(row)}\n`);
  writeFileSync(join(folder, 'limits.txt'), 'address 127.0.0.0/8 2\n');
  const env = { GATEWAY_POLICIES: join(folder, 'policies.yaml') };
  const { port, logged } = await startTestGateway(t, { env });
  await insideLongWindow();
  const statuses = async (times: number) => {
    const all: number[] = [];
    for (let i = 0; i < times; i++) all.push((await send(port, '/a')).status);
    return all;
  };
  t.strictSame(await statuses(3), [200, 200, 429]);
  writeFileSync(join(folder, 'limits.txt'), 'address 127.0.0.0/8 4\naddress 10.0.0.0/8 x\n');
  await logged(/limits\.txt:2: the limit is x/);
  t.strictSame(await statuses(1), [429], 'a file with a mistake changes nothing');
  writeFileSync(join(folder, 'limits.txt'), 'address 127.0.0.0/8 4\n');
  await logged(/the edited policy file is in use/);
  t.strictSame(await statuses(3), [200, 200, 429]);
});
