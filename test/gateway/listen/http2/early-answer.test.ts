/** A reply over HTTP/2 may come before the body. The rest of the body does not keep the connection open. */
import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { beginFramed } from '#test/support/http2-frames.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const REPLY = 'enough';
const FRAMES = 600;
const FRAME_BYTES = 100;

const authority = createAuthority(t);
const files = authority.issue('server', 'IP:127.0.0.1');
const env = { GATEWAY_TLS_CERT: files.cert, GATEWAY_TLS_KEY: files.key, GATEWAY_HTTP2: '1' };

t.test('discards a body that continues after the reply, and gives everything back', async (t) => {
  const asked: ServerResponse[] = [];
  const upstream = await startUpstream(t, (_req, res) => void asked.push(res));
  const { gateway, port } = await startTestGateway(t, {
    upstream: upstream.origin,
    policies: policyFile(),
    env,
  });
  const connections = (): unknown =>
    gateway.samples().find(({ name, labels }) => name === 'floodgate_held' && labels?.bound === 'connections')
      ?.value;
  const socket = await secured(port, authority.ca, { ALPNProtocols: ['h2'] });
  t.teardown(() => socket.destroy());
  const request = beginFramed(socket, '/early', 0);
  request.send(1, FRAME_BYTES);
  await until(() => asked.length === 1);
  t.equal(connections(), 2, 'the stream counts as a connection until its reply');
  asked[0]?.end(REPLY);
  await until(() => connections() === 1);
  for (let i = 0; i < FRAMES; i++) {
    request.send(1, FRAME_BYTES);
    await turn();
  }
  request.take(REPLY.length);
  t.equal(await request.status, 200);
  await request.leave();
  socket.end();
  await until(() => connections() === 0);
});
