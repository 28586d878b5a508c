/** A reply that is sent before the body was read reaches the sender. test/gateway/proxy/early-answer has gateways. */
import { connect } from 'node:net';
import t from 'tap';
import { apiKey, startApi } from '#test/support/api-app.ts';

const MB = 1024 * 1024;
const BODY = Buffer.alloc(20 * MB, 'x');

const cases = [
  ['/api/v1/management/surveys', {}, 401],
  ['/api/v1/management/surveys', { 'x-api-key': apiKey }, 413],
] as const;

t.test('a client that sends all of 20 MB before it reads gets the refusal', async (t) => {
  const port = await (await startApi(t)).listen();
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
