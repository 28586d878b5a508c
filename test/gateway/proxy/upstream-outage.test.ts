/** The log says why the application does not answer: once when an outage begins, and once when it is over. */
import { readFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { UpstreamOutage } from '#gateway/proxy/upstream-outage.ts';
import { createAuthority, type Identity } from '#test/support/certificates.ts';
import { testClock } from '#test/support/clock.ts';
import { startTestGateway, type TestGateway } from '#test/support/gateway.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { startSockets, trusted } from '#test/support/kinds.ts';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ABOUT = /^the application (?:does not answer|still does not answer|answers again)/;
const ok: RequestListener = (_, res) => void res.end('ok');

const linesOf = ({ log }: TestGateway): readonly Record<string, unknown>[] =>
  log.filter(({ msg }) => ABOUT.test(String(msg)));

async function ask({ origin }: TestGateway, times = 1, path = '/'): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) {
    const reply = await fetch(origin + path);
    await reply.arrayBuffer();
    statuses.push(reply.status);
  }
  return statuses;
}

const isOver = (gateway: TestGateway): Promise<void> => gateway.logged(/the application answers again/);

async function startTls(t: Test, { cert, key }: Identity): Promise<number> {
  return listen(t, createHttps({ cert: readFileSync(cert), key: readFileSync(key) }, ok));
}

t.test('one line when nothing listens, and one when the application is back', async (t) => {
  const port = await freePort();
  const gateway = await startTestGateway(t, { upstream: `http://127.0.0.1:${port}` });
  t.strictSame(new Set(await ask(gateway, 20)), new Set([502]));
  t.match(linesOf(gateway), [
    { level: 40, code: 'ECONNREFUSED', msg: /nothing listens there.*start the application/ },
  ]);
  t.equal(linesOf(gateway).length, 1, 'no line for each request');
  await listen(t, createHttp(ok), port);
  t.strictSame(await ask(gateway), [200]);
  await isOver(gateway);
  t.match(linesOf(gateway)[1], { level: 30, outageMs: Number, unanswered: 20 });
  t.strictSame(await ask(gateway, 3), [200, 200, 200]);
  t.equal(linesOf(gateway).length, 2);
});

t.test('names an unknown host, and a Unix socket that does not exist', async (t) => {
  const unknown = await startTestGateway(t, { upstream: 'http://no-such-app.invalid:3000' });
  t.strictSame(await ask(unknown, 2), [502, 502]);
  t.match(linesOf(unknown), [{ code: /^(?:ENOTFOUND|EAI_AGAIN)$/, msg: /name cannot be resolved/ }]);
  const missing = await startTestGateway(t, { upstream: `unix:${join(temporaryFolder(t), 'app.sock')}` });
  t.strictSame(await ask(missing), [502]);
  t.match(linesOf(missing), [{ code: 'ENOENT', msg: /there is no such socket/ }]);
});

t.test('names what is wrong with the certificate', async (t) => {
  const stranger = createAuthority(t);
  const here = 'DNS:localhost,IP:127.0.0.1';
  const untrusted = await startTls(t, stranger.issue('untrusted', here));
  const cases: readonly (readonly [number, string, RegExp])[] = [
    [untrusted, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', /an authority that is not trusted.*NODE_EXTRA_CA_CERTS/],
    [
      await listen(t, createHttps(trusted(t, here, -1), ok)),
      'CERT_HAS_EXPIRED',
      /certificate is not valid today .*expired.*renew it/,
    ],
    [
      await listen(t, createHttps(trusted(t, 'DNS:other.test'), ok)),
      'ERR_TLS_CERT_ALTNAME_INVALID',
      /certificate was issued for another name.*GATEWAY_UPSTREAM/,
    ],
  ];
  for (const [port, code, msg] of cases) {
    const gateway = await startTestGateway(t, { upstream: `https://localhost:${port}` });
    t.strictSame(await ask(gateway, 3), [502, 502, 502]);
    t.match(linesOf(gateway), [{ code, msg }], code);
    t.equal(linesOf(gateway).length, 1);
  }
  const plain = await listen(t, createHttp(ok));
  const gateway = await startTestGateway(t, { upstream: `https://127.0.0.1:${plain}` });
  t.strictSame(await ask(gateway), [502]);
  t.match(linesOf(gateway), [{ msg: /does it speak TLS/ }]);
});

t.test('a certificate of an authority in NODE_EXTRA_CA_CERTS is trusted; the log of a process', async (t) => {
  const authority = createAuthority(t);
  const port = await startTls(t, authority.issue('app', 'DNS:localhost'));
  const env = { GATEWAY_UPSTREAM: `https://localhost:${port}` };
  const stranger = await startGatewayProcess(t, env);
  t.equal((await fetch(stranger.origin)).status, 502);
  await stranger.until(/"code":"UNABLE_TO_VERIFY_LEAF_SIGNATURE".*authority that is not trusted/);
  const gateway = await startGatewayProcess(t, { ...env, NODE_EXTRA_CA_CERTS: authority.ca });
  t.equal((await fetch(gateway.origin)).status, 200);
  t.notMatch(gateway.output(), /does not answer/);
});

t.test('names timeouts, replies that break off, and replies that cannot be read', async (t) => {
  const cases: readonly (readonly [string, (socket: Socket) => void, number, string, RegExp])[] = [
    ['silent', () => undefined, 504, 'ETIMEDOUT', /in time.*GATEWAY_UPSTREAM_TIMEOUT_MS/],
    ['cut', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'), 502, 'UPSTREAM_BROKEN', /broke off/],
    ['no HTTP', (socket) => socket.end('220 mail.test ESMTP\r\n'), 502, 'UPSTREAM_BAD_REPLY', /reply/],
    [
      'a coding that was not asked for',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
      502,
      'UPSTREAM_BAD_REPLY',
      /coding/,
    ],
  ];
  for (const [name, answer, status, code, msg] of cases) {
    await t.test(name, async (t) => {
      const { origin } = await startSockets(t, 'http', (socket) => socket.on('data', () => answer(socket)));
      const gateway = await startTestGateway(t, {
        upstream: origin,
        env: { GATEWAY_UPSTREAM_TIMEOUT_MS: '300' },
      });
      t.strictSame(await ask(gateway, 4), [status, status, status, status]);
      t.match(linesOf(gateway), [{ code, msg }]);
      t.equal(linesOf(gateway).length, 1);
    });
  }
});

t.test('a broken exchange among good ones is no outage, three in a row are', async (t) => {
  const port = await listen(
    t,
    createHttp((req, res) => (req.url === '/crash' ? req.socket.destroy() : ok(req, res))),
  );
  const gateway = await startTestGateway(t, { upstream: `http://127.0.0.1:${port}` });
  for (let i = 0; i < 5; i++)
    t.strictSame([await ask(gateway), await ask(gateway, 2, '/crash')], [[200], [502, 502]]);
  t.strictSame(linesOf(gateway), []);
  await ask(gateway);
  await ask(gateway, 3, '/crash');
  t.match(linesOf(gateway), [{ code: 'UPSTREAM_CLOSED', msg: /closed the connection/ }]);
  await ask(gateway);
  await isOver(gateway);
  t.match(linesOf(gateway)[1], { unanswered: 3 });
});

interface Line extends Record<string, unknown> {
  readonly msg: string;
}

/** An outage by itself, with a clock of the test. */
function alone() {
  const clock = testClock(0);
  const log: Line[] = [];
  const write = (fields: object, msg: string): void => void log.push({ ...fields, msg });
  const outage = new UpstreamOutage({ clock: clock.now, log: { warn: write, info: write } });
  const fail = (code: string): void => outage.failed({ code, message: '', isUnreachable: true });
  const pass = (ms: number): void => {
    clock.advance(ms);
    outage.onTick();
  };
  return { outage, log, fail, pass };
}

t.test('another reason gives one further line, and the number of such lines has a bound', async (t) => {
  const { outage, log, fail } = alone();
  outage.answered();
  for (let i = 0; i < 100; i++) for (const code of ['ECONNREFUSED', 'ENOTFOUND']) fail(code);
  t.strictSame(
    log.map(({ code, msg }) => [code, /still/.test(msg)]),
    [
      ['ECONNREFUSED', false],
      ['ENOTFOUND', true],
    ],
  );
  for (let i = 0; i < 100; i++) fail(`E${i}`);
  t.equal(log.length, 4);
});

t.test('an application that comes and goes writes fewer and fewer lines', async (t) => {
  const { outage, log, fail, pass } = alone();
  for (let i = 0; i < 6000; i++) {
    if (i % 2 === 0) outage.answered();
    else fail('ECONNREFUSED');
    pass(10);
  }
  t.equal(log.length, 1, 'a minute of replies and failures by turns is one outage');
  t.equal(outage.last?.to, null);
  outage.answered();
  const endedAt = 60_000;
  pass(3000);
  t.match(log[1], { outageMs: endedAt - 10, unanswered: 3000 });
  t.match(outage.last, { from: 10, to: endedAt }, 'it ended with the reply');
  for (let i = 0; i < 60; i++) {
    fail('ECONNREFUSED');
    outage.answered();
    pass(1000);
  }
  t.ok(log.length < 40, `${log.length} lines in a minute`);
});
