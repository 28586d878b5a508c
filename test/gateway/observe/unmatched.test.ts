/** After a minute in which no policy matched, one line of the log names the paths, without what may be personal. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { testClock } from '#test/support/clock.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const POLICIES = `${policyFile('name: login, route: POST /login, identifier: ip, limit: 5, window: 1m')}\n`;

async function start(t: Test) {
  const clock = testClock(Date.now());
  const file = join(temporaryFolder(t), 'policies.yaml');
  writeFileSync(file, POLICIES.replace('api/v2/', ''));
  const env = { GATEWAY_POLICIES: file };
  const gateway = await startTestGateway(t, { clock: clock.now, env });
  const get = async (path: string): Promise<void> => {
    const reply = await fetch(gateway.origin + path);
    t.equal(reply.status, 200);
    await reply.arrayBuffer();
  };
  const lines = () => gateway.log.filter(({ msg }) => /no policy has matched/.test(String(msg)));
  return { clock, file, get, lines, gateway: gateway.gateway };
}

t.test('a line with the beginnings of some paths, once', async (t) => {
  const { clock, file, get, lines } = await start(t);
  const personal = ['/jane@example.com/x', '/7', '/0b9c7f3e-5f0a', `/${'x'.repeat(40)}`];
  for (const path of ['/', '/login', '//api/./users/jane?token=secret', '/%61pi/2', ...personal])
    await get(path);
  for (const letter of 'abcdefghij') await get(`/${letter}/${letter}`);
  clock.advance(59_000);
  await get('/api/3');
  t.strictSame(lines(), []);
  clock.advance(1000);
  await get('/api/4');
  t.match(lines(), [{ level: 40, file }]);
  const first = ['/', '/login', '/api/*', '/*'];
  t.strictSame(lines()[0]?.paths, [...first, '/a/*', '/b/*', '/c/*', '/d/*', '/e/*', '/f/*']);
  clock.advance(3_600_000);
  await get('/api/5');
  t.equal(lines().length, 1);
});

t.test('rare requests are no traffic of a minute, so the line names none', async (t) => {
  const { clock, get, lines } = await start(t);
  await get('/a');
  clock.advance(86_400_000);
  await get('/b');
  t.match(lines(), [{ paths: ['/a', '/b'], msg: /any request since this policy file is in use/ }]);
});

t.test('no line if a policy or an exclusion matched, until another file is in use', async (t) => {
  const { clock, file, get, lines, gateway } = await start(t);
  await get('/api/1');
  await get('/health');
  clock.advance(61_000);
  await get('/api/1');
  t.strictSame(lines(), []);
  writeFileSync(file, POLICIES);
  gateway.reload();
  await until(() => {
    clock.advance(500);
    return gateway.policyText() === POLICIES;
  });
  await get('/health');
  clock.advance(61_000);
  await get('/health');
  t.match(lines(), [{ paths: ['/health'] }]);
});
