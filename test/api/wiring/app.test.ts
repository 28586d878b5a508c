/** Replies that test/conversations/errors.md cannot hold. */
import { once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { BODY_BYTES_MAX } from '#api/errors.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const client = `/api/v1/client/${workspaceId}`;

t.test('400: bytes that are not HTTP get a well-formed reply, and the connection is closed', async (t) => {
  const live = await startApi(t);
  const port = await live.listen();
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8').end('GARBAGE\r\n\r\n');
  let answer = '';
  socket.on('data', (chunk: string) => {
    answer += chunk;
  });
  await once(socket, 'close');
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  t.match(head, /^HTTP\/1\.1 400 /);
  t.match(JSON.parse(body), { code: 'bad_request', message: String, details: {} });
});

t.test('413: by the announced Content-Length, and by the bytes received', async (t) => {
  const expected = {
    code: 'payload_too_large',
    message: 'Payload Too Large',
    details: { error: `Request body must not exceed ${BODY_BYTES_MAX} bytes` },
  };
  const announced = await api.client('POST', `${client}/responses`, '{}', {
    'content-length': String(BODY_BYTES_MAX + 1),
  });
  t.equal(announced.status, 413);
  t.strictSame(announced.json, expected);
  const arrived = await api.client('POST', `${client}/responses`, `"${'x'.repeat(BODY_BYTES_MAX)}"`);
  t.equal(arrived.status, 413);
  t.strictSame(arrived.json, expected);
  const fits = await api.client('POST', `${client}/responses`, `"${'x'.repeat(BODY_BYTES_MAX - 2)}"`);
  t.equal(fits.status, 400, 'a body of exactly the limit is read');
});

t.test('500: an internal error reveals nothing about its cause', async (t) => {
  const broken = await startApi(t);
  await broken.context.db.destroy();
  const reply = await broken.client('GET', `${client}/environment`);
  t.equal(reply.status, 500);
  t.strictSame(reply.json, {
    code: 'internal_server_error',
    message: 'Something went wrong. Please try again.',
    details: {},
  });
  t.equal(reply.headers['access-control-allow-origin'], '*');
  t.equal(reply.headers['cache-control'], 'private, no-store');
  const health = await broken.client('GET', '/api/v2/health');
  t.equal(health.status, 200, 'a failing check is reported with 200');
  t.strictSame(health.json, {
    data: { main_database: false, cache_database: true, main_database_problem: 'database_unusable' },
  });
  t.equal((await broken.client('GET', '/ready')).status, 503);
  const probe = await broken.client('GET', '/health');
  t.equal(probe.status, 503);
  t.strictSame(probe.json, { status: 'unavailable', problem: 'database_unreachable' });
});
