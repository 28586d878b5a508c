/** Load balancers and orchestrators call these routes often, so they must be cheap. */
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import t from 'tap';
import { createDatabaseHealth } from '#api/db/health.ts';
import { startApi } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

t.test('200 while it serves and can read its database', async (t) => {
  const api = await startApi(t);
  t.match(await api.client('GET', '/health'), { status: 200, text: '{"status":"ok"}' });
  t.match(await api.client('GET', '/ready'), { status: 200, text: '{"status":"ready"}' });
});

t.test('503 while it stops, on open connections', async (t) => {
  const api = await startApi(t);
  const port = await api.listen();
  const accepted: Socket[] = [];
  api.app.server.on('connection', (socket: Socket) => accepted.push(socket));
  // A request is in progress when the service is told to stop.
  const body = '{"surveyId":"nothing","finished":false,"data":{}}';
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write(
    `POST /api/v1/client/ws1/responses HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  await until(() => answer.includes('100 Continue'));
  // Two more connections have begun a request. Idle ones are closed at once.
  const probes = ['/health', '/ready'].map((path) => {
    const probe = connect(port, '127.0.0.1');
    t.teardown(() => probe.destroy());
    probe.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n`);
    return probe;
  });
  await until(() => accepted.length === 3 && accepted.every(({ bytesRead }) => bytesRead > 0));
  const closed = api.app.close();
  await until(() => !api.app.server.listening);
  for (const probe of probes) {
    probe.write('\r\n');
    const reply = await text(probe);
    t.match(reply, /^HTTP\/1\.1 503 /);
    t.ok(reply.endsWith('{"status":"unavailable","problem":"draining"}'), reply);
  }
  socket.end(body);
  await closed;
});

t.test('many requests cause one query a second, and wait a bounded time for the database', async (t) => {
  const api = await startApi(t);
  let now = 0;
  let asked = 0;
  const health = createDatabaseHealth(() => now, pino({ level: 'silent' }));
  const hanging = api.context.db.withPlugin({
    transformQuery: ({ node }) => {
      asked += 1;
      return node;
    },
    transformResult: () => new Promise(() => undefined),
  });
  const answers = Array.from({ length: 100 }, () => health.isReached(hanging));
  t.strictSame(new Set(await Promise.all(answers)), new Set([false]));
  t.equal(asked, 1);
  now = 1_000;
  t.equal(await health.isReached(api.context.db), true);
});
