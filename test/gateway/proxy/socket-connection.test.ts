import t from 'tap';
import type { ExchangeHandler } from '#gateway/proxy/exchange.ts';
import { Rest } from '#gateway/proxy/rest.ts';
import { SocketConnection } from '#gateway/proxy/socket-connection.ts';
import { UpstreamAddress } from '#gateway/proxy/upstream-socket.ts';
import { stall } from '#test/support/stall.ts';
import { startRawUpstream } from './exchange.ts';

t.test('a connection that was made during a stall of this process is used', async (t) => {
  const CONNECT_MS = 50;
  const upstream = await startRawUpstream(t, (socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
  const connection = new SocketConnection({
    address: new UpstreamAddress(`http://127.0.0.1:${upstream.port}`),
    clock: () => performance.now(),
    connectTimeoutMs: CONNECT_MS,
    headerBytesMax: 16_384,
    keepAliveMs: 1000,
    garbage: { freed: () => undefined },
    rest: new Rest(),
    onClose: () => undefined,
  });
  t.teardown(() => connection.close());
  const status = await new Promise<number>((resolve, reject) => {
    const handler: ExchangeHandler = {
      onBegin: () => true,
      onHead: (code) => resolve(code),
      onInterim: () => undefined,
      onData: () => undefined,
      onEnd: () => undefined,
      onError: reject,
      onUpgrade: () => undefined,
    };
    connection.dispatch(
      { method: 'GET', target: '/', headers: [], body: null, contentLength: null, upgrade: null },
      handler,
    );
    stall(4 * CONNECT_MS);
  });
  t.equal(status, 204);
});
