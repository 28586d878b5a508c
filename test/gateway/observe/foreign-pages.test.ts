/** Tests that the gateway notices pages of other origins that cannot read its refusals. */
import t from 'tap';
import { ForeignPages } from '#gateway/observe/foreign-pages.ts';
import { reportFindings } from '#gateway/operate/doctor/findings.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { send } from '../proxy/exchange.ts';

const APP = 'https://app.example.org';
const ALLOWS = ['Content-Type', 'text/plain', 'Access-Control-Allow-Origin', APP];

t.test('needs the page and the permission of the application', async (t) => {
  const seen = (
    request: { headers?: readonly string[]; path?: string; host?: string; forwardedHost?: string },
    reply = ALLOWS,
    origins: [] | null = null,
  ): boolean => {
    const { headers = ['Origin', APP], path = '/a', host = 'api.example.org', forwardedHost } = request;
    let calls = 0;
    const pages = new ForeignPages({ origins }, () => calls++);
    for (let i = 0; i < 3; i++)
      pages.note({ req: { rawHeaders: headers }, head: { host, forwardedHost }, match: { path } }, reply);
    t.equal(calls, pages.isSeen ? 1 : 0);
    return pages.isSeen;
  };
  t.equal(seen({}), true);
  t.equal(seen({ headers: [] }), false, 'no page');
  t.equal(seen({ headers: ['Origin', 'null'] }), false, 'no origin that can be listed');
  t.equal(seen({}, ['Vary', 'Origin']), false, 'not allowed: anybody can send an Origin');
  t.equal(seen({ path: '/api/v1/client/a' }), false, 'client routes are for all pages');
  t.equal(seen({ host: 'app.example.org' }), false, 'its own page');
  t.equal(
    seen({ host: 'internal', forwardedHost: 'app.example.org' }),
    false,
    'its own page, behind a proxy',
  );
  t.equal(seen({}, ALLOWS, []), false, 'the file has the key');
});

for (const parser of ['0', '1'])
  t.test(`the log and doctor say so: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
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
      const report = (await (await fetch(`${admin}/api/doctor`)).json()) as Parameters<
        typeof reportFindings
      >[0];
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
