/** Tests what is noticed of a policy file that does not fit the traffic: no matches, and pages that cannot read refusals. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Traffic } from '#gateway/observe/traffic.ts';
import { reportFindings } from '#gateway/operate/doctor/findings.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { testClock } from '#test/support/clock.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { send } from '../proxy/exchange.ts';

const APP = 'https://app.example.org';
const USUAL = {
  headers: ['Origin', APP],
  reply: ['Content-Type', 'text/plain', 'Access-Control-Allow-Origin', APP],
  path: '/a',
  host: 'api.example.org',
  forwardedHost: undefined as string | undefined,
  policies: policyFile(),
};

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
  t.match(lines(), [
    { paths: ['/a', '/b'], msg: /any request of this process since this policy file is in use/ },
  ]);
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

t.test('pages of other origins: needs the page and the permission of the application', async (t) => {
  const CASES: readonly [string, boolean, Partial<typeof USUAL>][] = [
    ['a page of another origin', true, {}],
    ['no page', false, { headers: [] }],
    ['no origin that can be listed', false, { headers: ['Origin', 'null'] }],
    ['not allowed: anybody can send an Origin', false, { reply: ['Vary', 'Origin'] }],
    ['client routes are for all pages', false, { path: '/api/v1/client/a' }],
    ['its own page', false, { host: 'app.example.org' }],
    ['its own page, behind a proxy', false, { host: 'internal', forwardedHost: 'app.example.org' }],
    ['the file has the key', false, { policies: `${policyFile()}\nreplies: { cors: [] }` }],
  ];
  for (const [what, isForeign, unusual] of CASES) {
    const { headers, reply, path, host, forwardedHost, policies } = { ...USUAL, ...unusual };
    const set = loadPolicies(policies, 'policies.yaml');
    let calls = 0;
    const traffic = new Traffic({ policies: () => set, file: '', log: { warn: () => calls++ } });
    const page = { req: { rawHeaders: headers }, head: { host, forwardedHost }, match: { path } };
    for (let i = 0; i < 3; i++) traffic.observer.replied(page, { headers: reply });
    t.equal(traffic.report.hasForeignPages, isForeign, what);
    t.equal(calls, isForeign ? 1 : 0, `${what}: told once`);
  }
});

for (const parser of ['0', '1'])
  t.test(`the log and doctor tell of pages of other origins: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const upstream = await startUpstream(t, (_, res) => {
      res.writeHead(200, { 'Access-Control-Allow-Origin': '*' }).end('ok');
    });
    const gateway = await startTestGateway(t, {
      upstream,
      policies: policyFile(),
      env: { GATEWAY_OWN_PARSER: parser },
    });
    const admin = await startTestAdmin(t, gateway);
    const told = async (): Promise<number> => {
      type Report = Parameters<typeof reportFindings>[0];
      const report = (await (await fetch(`${admin}/api/doctor`)).json()) as Report;
      const findings = reportFindings(report, { version: report.version, now: report.now });
      return findings.filter(({ check, ok }) => check === 'other-origins' && !ok).length;
    };
    const warnings = (): number =>
      gateway.log.filter(({ msg }) => /replies: \{ cors/.test(String(msg))).length;
    await send(gateway.port, '/a');
    t.equal(await told(), 0);
    t.equal(warnings(), 0);
    for (let i = 0; i < 2; i++) await send(gateway.port, '/a', { headers: { origin: APP } });
    t.equal(await told(), 1);
    t.equal(warnings(), 1, 'once');
  });
