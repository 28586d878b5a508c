/** Interim replies of the application reach clients of HTTP/1.1 on both ways in, before the final reply. */
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, type TestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startRawUpstream } from './exchange.ts';

const HINTS =
  'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nlink: </b.css>\r\nX-Odd: \xe9\r\n\r\n';
const FINAL = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfinal';
const COUNTED = policyFile('name: all, route: "* *", identifier: ip, limit: 1000, window: 366d');

const get = (path: string, ...fields: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: a', ...fields, '', ''].join('\r\n');
/** Returns what came before the head of the final reply. */
const before = (text: string, status = 200): string => text.slice(0, text.indexOf(`HTTP/1.1 ${status} `));

type Answer = (socket: Socket, text: string) => void;

async function start(t: Test, env: Record<string, string>, answer: Answer): Promise<TestGateway> {
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (text.endsWith('\r\n\r\n')) answer(socket, text);
  });
  return startTestGateway(t, { upstream, policies: COUNTED, env });
}

for (const [way, env] of [
  ['own parser', { GATEWAY_OWN_PARSER: '1' }],
  ['node:http', { GATEWAY_OWN_PARSER: '0' }],
] as const) {
  t.test(way, async (t) => {
    t.test('arrive at once, as they were sent, and the final reply behind them', async (t) => {
      let finish = (): void => undefined;
      const { port } = await start(t, env, (socket) => {
        socket.write(HINTS, 'latin1');
        finish = () => void socket.write(FINAL);
      });
      const client = sendRaw(port, get('/'));
      t.equal(await client.until(/\r\n\r\n$/), HINTS);
      finish();
      const text = await client.until(/final$/);
      t.equal(before(text), HINTS);
      t.match(text, /\r\n\r\nHTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\nfinal$/);
      client.socket.write(get('/'));
      await client.until(/200 OK[\s\S]*\r\nX-Odd: [^\n]+\n\r\n$/);
      finish();
      await client.until(/final[\s\S]*final$/);
      client.socket.destroy();
    });

    t.test('HEAD, and bodies that are still on their way', async (t) => {
      const { port } = await start(t, env, (socket, text) => {
        if (text.startsWith('POST')) socket.write(HINTS, 'latin1');
        else socket.write(HINTS + FINAL.replace('final', ''), 'latin1');
      });
      const head = get('/', 'Connection: close').replace('GET', 'HEAD');
      t.equal(before(await sendRaw(port, head).ended()), HINTS);
      const upload = sendRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n\r\n\r\n');
      t.equal(await upload.until(/\r\n\r\n$/), HINTS);
      upload.socket.destroy();
    });

    t.test('they do not extend the time that the application has', async (t) => {
      const { port } = await start(t, { ...env, GATEWAY_UPSTREAM_TIMEOUT_MS: '400' }, (socket) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 100);
        socket.once('close', () => clearInterval(timer));
      });
      const text = await sendRaw(port, get('/', 'Connection: close')).ended();
      t.match(text, /HTTP\/1\.1 504 /);
    });

    t.test('the request is not sent again behind one', async (t) => {
      let requests = 0;
      const { port } = await start(t, env, (socket, text) => {
        requests++;
        if (text.includes('/again')) socket.write(HINTS, 'latin1', () => socket.resetAndDestroy());
        else socket.write(FINAL);
      });
      const client = sendRaw(port, get('/'));
      await client.until(/final$/);
      client.socket.write(get('/again', 'Connection: close'));
      t.match(await client.ended(), /HTTP\/1\.1 502 /);
      t.equal(requests, 2);
    });

    t.test('a client that has left is no fault', async (t) => {
      let hint = (): void => undefined;
      const gateway = await start(t, env, (socket, text) => {
        if (text.includes('/left')) hint = () => void socket.write(HINTS + FINAL, 'latin1');
        else socket.write(FINAL);
      });
      const client = sendRaw(gateway.port, get('/left'));
      await until(() => gateway.sample('floodgate_held', { bound: 'upstream_connections' }) === 1, 'sent');
      client.socket.resetAndDestroy();
      await until(() => gateway.sample('floodgate_held', { bound: 'connections' }) === 0, 'left');
      hint();
      await until(
        () => gateway.sample('floodgate_held', { bound: 'upstream_connections' }) === 0,
        'the reply is read',
      );
      t.match(await sendRaw(gateway.port, get('/', 'Connection: close')).ended(), /final$/);
    });
  });
}
