/** The admin listener and a client that opens a connection in advance. It is a system test because it takes half a minute. */
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

t.test('a connection without a byte is closed without a reply; a slow head gets 408', async (t) => {
  const gateway = await startTestGateway(t, { upstream: 'http://127.0.0.1:9' });
  const port = Number(new URL(await startTestAdmin(t, gateway)).port);
  const [silent, slow] = [sendRaw(port, ''), sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')];
  t.equal(await silent.ended(), '');
  t.match(await slow.ended(), /^HTTP\/1\.1 408 /);
});
