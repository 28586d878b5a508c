/** A reply that is sent before the body was read reaches the sender, with or without a gateway. */
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { apiKey, startApi } from '#test/support/api-app.ts';
import { startTestGateway } from '#test/support/gateway.ts';

const MB = 1024 * 1024;
const BODY = Buffer.alloc(20 * MB, 'x');

async function start(t: Test): Promise<number> {
  return (await startApi(t)).listen();
}

const cases = [
  ['/api/v1/management/surveys', {}, 401],
  ['/api/v1/management/surveys', { 'x-api-key': apiKey }, 413],
] as const;

t.test('through the gateway, a refusal of 20 MB arrives', async (t) => {
  const port = await start(t);
  const gateway = await startTestGateway(t, {
    upstream: `http://127.0.0.1:${port}`,
    policies: 'version: 1\nidentifiers:\n  ip: { source: client-address }\npolicies: []\n',
  });
  for (const [path, headers, status] of cases) {
    const statuses = new Set<number>();
    for (let round = 0; round < 6; round++) {
      for (const framing of [{ 'content-length': BODY.length }, {}]) {
        const answer = await send(gateway.port, path, {
          method: 'POST',
          body: BODY,
          pieces: MB,
          headers: { ...headers, ...framing },
        });
        statuses.add(answer.status);
      }
    }
    t.same([...statuses], [status], `${status} every time`);
  }
});

t.test('a client that sends all of 20 MB before it reads gets the refusal', async (t) => {
  const port = await start(t);
  for (const [path, headers, status] of cases) {
    for (let round = 0; round < 5; round++) {
      const socket = connect(port, '127.0.0.1').pause();
      const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\n${fields.join('')}Content-Length: ${BODY.length}\r\n\r\n`,
      );
      const sent = new Promise<Error | null | undefined>((resolve) => socket.write(BODY, resolve));
      socket.on('error', () => undefined);
      t.equal((await sent) ?? null, null, 'the client sends its whole body');
      const answer = await new Promise<string>((resolve) => {
        socket.once('data', (chunk) => resolve(chunk.toString('latin1')));
        socket.once('close', () => resolve('closed'));
        socket.resume();
      });
      t.equal(answer.slice(0, 12), `HTTP/1.1 ${status}`);
      socket.destroy();
    }
  }
});
