/** What is on the page that a browser gets. Its head, beside that of JSON: exchanges/page.md. */
import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { DateField } from '#gateway/http/date-field.ts';
import { PlainRequest } from '#gateway/listen/plain/plain-request.ts';
import { PlainResponse } from '#gateway/listen/plain/plain-response.ts';
import { templateOf } from '#gateway/policy/page-template.ts';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import { limitRefusal } from '#gateway/refusals/refusal.ts';
import { NO_CORS } from '#gateway/reply/cors.ts';
import { DenialWriter } from '#gateway/reply/denial.ts';
import { type Framing, headersOf, recordOf } from '#gateway/reply/own-reply.ts';
import { OWN_PAGE, type Page, pageFrom } from '#gateway/reply/page.ts';
import { ownReply, refusalReply } from '#gateway/reply/refusal-reply.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { identity, part, policy } from '#test/support/spend.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { send } from '../proxy/exchange.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const ID = '0123456789abcdefghij';
const framing = { cors: NO_CORS, close: false, decision: ID, page: OWN_PAGE };
const violation = {
  policy: policy('login', 5, 60),
  bucket: part(policy('login', 5, 60)),
  capacity: 5,
  limit: 5,
  used: 5,
  share: 5,
  remaining: 0,
  resetMs: 36_001,
  canNeverPass: false,
};

function denialReply(denying: typeof violation, as: Framing) {
  return refusalReply(limitRefusal([denying], [], 'store', null), as);
}

function bannedReply(leftMs: number, as: Framing) {
  return refusalReply({ kind: 'banned', identity: identity('one'), leftMs, policy: null }, as);
}

t.test('uses the operator’s template, allows only its own scripts, and no bad edit', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'policies.yaml');
  const template = join(folder, 'denied.html');
  const script = '<script>document.title = "x"</script>';
  writeFileSync(template, `<p>{decision} Ö {policy} {seconds} {decision}</p>${script}\n`);
  const row = 'name: a, route: GET /a, identifier: ip, limit: 1, window: 366d';
  writeFileSync(file, `replies: { page: denied.html }\n${policyFile(row)}`);
  const { port, logged } = await startTestGateway(t, { env: { GATEWAY_POLICIES: file } });
  const ask = () => send(port, '/a', { headers: { accept: BROWSER } });
  const page = async (): Promise<string> => (await ask()).body.toString().replace(/\d+/, 'N');
  t.equal((await ask()).status, 200);
  // The first denial is written for itself, the next ones from its kept text.
  for (let i = 0; i < 3; i++) {
    const { status, headers, body } = await ask();
    const id = headers['x-gateway-decision'];
    t.equal(status, 429);
    t.equal(body.toString(), `<p>${id} Ö a ${headers['retry-after']} ${id}</p>${script}\n`);
    t.equal(headers['content-length'], String(body.length));
    const digest = hash('sha256', script.replaceAll(/<.*?>/g, ''), 'base64');
    t.match(headers['content-security-policy'], `script-src 'sha256-${digest}';`);
  }
  writeFileSync(template, '<p>two {seconds}</p>\n');
  await logged(/the edited policy file is in use/);
  t.equal(await page(), '<p>two N</p>\n');
  writeFileSync(template, '<p>three</p>\n');
  await logged(/the edited policy file is refused/);
  t.equal(await page(), '<p>two N</p>\n');
});

t.test('every code has a page with an explanation', async (t) => {
  for (const code of Object.keys(CODES) as ErrorCode[]) {
    const { body, headers } = ownReply(code, 'the reason', framing);
    t.match(body, /<h1>[A-Z][^<]+<\/h1>\n<p>[A-Z][^<]+\.<\/p>/, code);
    t.match(body, `<code>${ID}</code>`);
    t.notMatch(body, 'undefined');
    t.ok(body.length < 4096, `${body.length} bytes`);
    t.match(recordOf(headers), { Vary: 'Accept', 'x-gateway-decision': ID });
  }
});

t.test('the page has its own script and style, and loads nothing', async (t) => {
  const { body, headers } = denialReply(violation, framing);
  const policy = recordOf(headers)['Content-Security-Policy'] ?? '';
  for (const [name, directive] of [
    ['script', 'script-src'],
    ['style', 'style-src'],
  ] as const) {
    const [, text = ''] = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(body) ?? [];
    t.ok(text.length > 100);
    t.match(policy, `${directive} 'sha256-${hash('sha256', text, 'base64')}';`);
  }
  t.notMatch(body, /https?:|url\(|@import|<img|<noscript/);
});

t.test('writes the waiting time in words', async (t) => {
  const cases = [
    [0, '1 second'],
    [1001, '2 seconds'],
    [120_000, '120 seconds'],
    [121_000, '3 minutes'],
    [3_600_000, '60 minutes'],
    [7_201_000, '3 hours'],
    [172_800_000, '48 hours'],
    [604_800_000, '7 days'],
  ] as const;
  for (const [leftMs, text] of cases) t.match(bannedReply(leftMs, framing).body, `>${text}</time>`);
});

t.test('the page tells if a request can never pass', async (t) => {
  const { body } = denialReply({ ...violation, canNeverPass: true }, framing);
  t.match(body, 'waiting does not help');
  t.notMatch(body, '<time');
});

t.test('a template is used only if there is a time to wait', async (t) => {
  const page = pageFrom(templateOf('denied.html', '<p>{seconds}|{policy}|{decision}</p>'));
  const mine = { ...framing, page };
  t.equal(denialReply(violation, mine).body, `<p>37|login|${ID}</p>`);
  t.equal(bannedReply(5000, mine).body, `<p>5||${ID}</p>`);
  const listed = (status: 403 | 429) =>
    refusalReply({ kind: 'listed', entry: { names: 'client', line: 1, status, reason: null } }, mine);
  t.match(listed(403).body, '<h1>Not allowed</h1>');
  t.equal(listed(429).body, `<p>3600||${ID}</p>`);
  const odd = { ...violation, policy: policy('<i>"', 5, 60) };
  t.equal(denialReply(odd, mine).body, `<p>37|&#60;i&#62;&#34;|${ID}</p>`);
  t.match(recordOf(headersOf(bannedReply(5000, mine)))['Content-Security-Policy'], /^default-src 'none'/);
});

/** Writes denials without a connection. @param bodies gets them */
function writerTo(bodies: string[]): (violated: readonly (typeof violation)[], page: Page) => void {
  const writer = new DenialWriter(() => 0);
  const head = { method: 'GET', target: '/', rawHeaders: [], contentLength: 0, keepsAlive: true, bytes: 0 };
  const options = { date: new DateField(() => 0), keepAlive: 'timeout=5' };
  const res = new PlainResponse(new PlainRequest(head, new Socket(), null), true, options, () => undefined);
  res.endShared = (reply, id) => void bodies.push(reply.bodyWith(id));
  return (violated, page) =>
    writer.write(res, limitRefusal(violated, [], 'store', null), { ...framing, page }, ID);
}

t.test('a replaced policy gets its own page', async (t) => {
  const page = pageFrom(templateOf('denied.html', '{policy}'));
  const bodies: string[] = [];
  const write = writerTo(bodies);
  for (const name of ['old', 'new'])
    write([{ ...violation, policy: policy(name, 5, 60, { index: 0 }) }], page);
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(bodies, ['old', 'new']);
});

t.test('the cache of pages is bounded, however many policies deny', async (t) => {
  const page = pageFrom(templateOf('denied.html', `{decision}${'x'.repeat(65_000)}`));
  const bodies: string[] = [];
  const write = writerTo(bodies);
  const used = (): number => {
    setFlagsFromString('--expose-gc');
    runInNewContext('gc')();
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  const policies = Array.from({ length: 40 }, (_, i) => policy(`p${i}`, 5, 60, { index: i }));
  for (let second = 1; second <= 60; second++) {
    for (const one of policies) write([{ ...violation, policy: one, resetMs: second * 1000 }], page);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(bodies.length, 40);
    t.ok(bodies.every((body) => body.length === 65_000 + ID.length));
    bodies.length = 0;
  }
  const megabytes = (used() - before) / 2 ** 20;
  t.ok(megabytes < 40, `${megabytes.toFixed(1)} MiB`);
  t.equal(policies.length, 40);
});
