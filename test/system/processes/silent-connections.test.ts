/** Clients that open a connection in advance. These are system tests because they take half a minute. */
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { startApi } from '#test/support/api-app.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const SLOW_HEAD = 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ';

const SLOW_BODY =
  'POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';

t.test('admin listener: no reply without a byte; a slow head or body gets 408', async (t) => {
  const gateway = await startTestGateway(t, { upstream: 'http://127.0.0.1:9' });
  const port = Number(new URL(await startTestAdmin(t, gateway)).port);
  const [silent, head, body] = [sendRaw(port, ''), sendRaw(port, SLOW_HEAD), sendRaw(port, SLOW_BODY)];
  t.equal(await silent.ended(), '');
  t.match(await head.ended(), /^HTTP\/1\.1 408 /);
  t.match(await body.ended(), /^HTTP\/1\.1 408 /);
});

t.test('survey API: no reply without a byte; a slow head gets 400', async (t) => {
  const { app } = await startApi(t);
  // Node looks every half minute.
  app.server.headersTimeout = 1;
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
  const [silent, slow] = [sendRaw(Number(port), ''), sendRaw(Number(port), SLOW_HEAD)];
  t.equal(await silent.ended(), '');
  t.match(await slow.ended(), /^HTTP\/1\.1 400 /);
});
