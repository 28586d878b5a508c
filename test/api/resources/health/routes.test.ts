/** What load balancers and orchestrators ask, and how little it may cost. */
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { pino } from 'pino';
import t from 'tap';
import { createDatabaseHealth } from '#api/db/health.ts';
import { startApi } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

t.test('200 while it serves and reaches its database', async (t) => {
  const api = await startApi();
  t.teardown(() => api.close());
  t.match(await api.client('GET', '/health'), { status: 200, text: '{"status":"ok"}' });
  t.match(await api.client('GET', '/ready'), { status: 200, text: '{"status":"ready"}' });
});

t.test('503 while it stops: on connections that are still open', async (t) => {
  const api = await startApi();
  t.teardown(() => api.close());
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  const address = api.app.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  // Two requests on one connection: the first is under way when the service is told to stop.
  const body = '{"surveyId":"nothing","finished":false,"data":{}}';
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write(
    `POST /api/v1/client/ws1/responses HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  await until(() => text.includes('100 Continue'));
  const probes = ['/health', '/ready'].map((path) => {
    const request = httpRequest({ port, host: '127.0.0.1', path, method: 'GET' });
    return request;
  });
  for (const probe of probes)
    await new Promise((resolve) => probe.once('socket', (s) => s.once('connect', resolve)));
  const closed = api.app.close();
  await until(() => !api.app.server.listening);
  for (const probe of probes) {
    const answered = new Promise<[number | undefined, string]>((resolve, reject) => {
      probe.once('error', reject);
      probe.once('response', (response) => {
        let answer = '';
        response.on('data', (chunk) => (answer += chunk));
        response.once('end', () => resolve([response.statusCode, answer]));
      });
    });
    probe.end();
    t.strictSame(await answered, [503, '{"status":"unavailable","problem":"draining"}']);
  }
  socket.end(body);
  await closed;
});

t.test(
  'asked by many, the database is asked once a second; one that hangs costs a bounded time',
  async (t) => {
    const api = await startApi();
    t.teardown(() => api.close());
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
  },
);
