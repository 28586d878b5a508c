import { once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { BODY_BYTES_MAX } from '#api/errors.ts';
import { gatewayRoutes } from '#api/surfaces/client.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const client = `/api/v1/client/${workspaceId}`;

t.test('404: an unknown path gets the error envelope of its API family', async (t) => {
  const v1 = await api.client('GET', '/api/v1/nothing');
  t.equal(v1.status, 404);
  t.match(v1.json, { code: 'not_found', message: String, details: {} });
  const clientReply = await api.client('GET', `${client}/nothing`);
  t.equal(clientReply.status, 404);
  t.equal(clientReply.headers['access-control-allow-origin'], '*');
  const v2 = await api.manage('GET', '/api/v2/nothing');
  t.equal(v2.status, 404);
  t.match(v2.json, { error: { code: 404, message: 'Not Found', details: Array } });
  const v3 = await api.manage('GET', '/api/v3/nothing');
  t.equal(v3.status, 404);
  t.equal(v3.headers['content-type'], 'application/problem+json; charset=utf-8');
  t.match(v3.json, { title: 'Not Found', status: 404, code: 'not_found', instance: '/api/v3/nothing' });
});

t.test('401: without credentials, known and unknown paths get the same reply', async (t) => {
  for (const path of [
    '/api/v1/management/nothing',
    '/api/v1/management/surveys',
    '/api/v1/webhooks/x',
    '/api/v1/me',
    '/api/v1/me%2Fx',
    '/api/v1/surveys',
    '/api/v1/responses/x',
  ]) {
    const reply = await api.client('GET', path);
    t.equal(reply.status, 401, path);
    t.strictSame(reply.json, {
      code: 'not_authenticated',
      message: 'Not authenticated',
      details: { 'x-Api-Key': 'Header not provided or API Key invalid' },
    });
  }
  const v2 = await api.client('GET', '/api/v2/nothing');
  t.equal(v2.status, 401);
  t.strictSame(v2.json, { error: { code: 401, message: 'Unauthorized' } });
  const v3 = await api.client('GET', '/api/v3/nothing');
  t.equal(v3.status, 401);
  t.match(v3.json, { code: 'not_authenticated', status: 401, detail: 'Not authenticated' });
});

t.test('405: lists the methods of a known path', async (t) => {
  const reply = await api.manage('PATCH', '/api/v1/management/surveys');
  t.equal(reply.status, 405);
  t.equal(reply.headers.allow, 'GET, HEAD, POST');
  t.strictSame(reply.json, {
    code: 'method_not_allowed',
    message: 'The HTTP PATCH method is not supported by this route.',
    details: { allowed_methods: ['GET', 'HEAD', 'POST'] },
  });
  const clientReply = await api.client('DELETE', `${client}/environment`);
  t.equal(clientReply.status, 405);
  t.equal(clientReply.headers.allow, 'GET, HEAD, OPTIONS');
  t.equal(clientReply.headers['access-control-allow-origin'], '*');
});

t.test('400: a malformed URL is refused', async (t) => {
  const reply = await api.client('GET', '/api/v1/client/%zz/environment');
  t.equal(reply.status, 400);
  t.match(reply.json, { code: 'bad_request', message: /percent-encoding/, details: {} });
  t.equal(reply.headers['access-control-allow-origin'], '*');
  t.equal(reply.headers['cache-control'], 'private, no-store');
});

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

t.test('400: malformed JSON; only client routes repeat the parser’s message', async (t) => {
  const v1 = await api.client('POST', `${client}/responses`, '{"surveyId":');
  t.equal(v1.status, 400);
  t.equal(v1.json.message, 'Malformed JSON input, please check your request body');
  t.type(v1.json.details.error, 'string');
  const v2 = await api.client('POST', `/api/v2/client/${workspaceId}/responses`, '{"surveyId":');
  t.equal(v2.json.message, 'Invalid JSON in request body');
  const put = await api.client('PUT', `${client}/responses/x`, '{');
  t.equal(put.json.message, 'Malformed JSON in request body');
  const management = await api.manage('POST', '/api/v1/management/surveys', '{');
  t.equal(management.status, 400);
  t.strictSame(management.json, {
    code: 'bad_request',
    message: 'Malformed JSON input, please check your request body',
    details: {},
  });
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

t.test('reads a body as JSON whatever its Content-Type', async (t) => {
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    ';;;',
    'multipart/form-data; boundary=x',
  ]) {
    const reply = await api.client('POST', `${client}/displays`, '{"surveyId":"nope"}', {
      'content-type': type,
    });
    t.equal(reply.status, 404, type);
    t.match(reply.json, { message: 'Survey not found' });
  }
});

t.test('an empty body gets the error for missing fields, not a 500', async (t) => {
  const reply = await api.client('POST', `${client}/displays`);
  t.equal(reply.status, 400);
  t.equal(reply.json.message, 'Fields are missing or incorrectly formatted');
});

t.test('successes and errors have security headers and forbid caching', async (t) => {
  for (const reply of [await api.client('GET', '/health'), await api.client('GET', '/nothing')]) {
    t.match(reply.headers, {
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'SAMEORIGIN',
      'referrer-policy': 'strict-origin-when-cross-origin',
      'strict-transport-security': /max-age=/,
      'permissions-policy': String,
      'content-security-policy': String,
      'cache-control': 'private, no-store',
    });
    t.equal(reply.headers['access-control-allow-origin'], undefined);
  }
});

t.test('200: every client path answers preflights, with the cache time of its route', async (t) => {
  const shared = 'public, s-maxage=3600, max-age=3600';
  const cases: readonly (readonly [string, string])[] = [
    [`${client}/environment`, shared],
    [`${client}/displays`, shared],
    [`/api/v2/client/${workspaceId}/responses`, shared],
    ['/api/v1/client/unknown/user', shared],
    [`${client}/storage`, shared],
    [`/api/v2/client/${workspaceId}/storage`, shared],
    [`${client}/storage/upload`, 'private, no-store'],
    [`${client}/responses/r1`, 'private, no-store'],
    [`${client}/displays/d1`, 'private, no-store'],
    [`${client}/displays/d1/response`, 'private, no-store'],
  ];
  for (const [path, cacheControl] of cases) {
    const reply = await api.client('OPTIONS', path, undefined, {
      origin: 'https://shop.example',
      'access-control-request-method': 'POST',
    });
    t.equal(reply.status, 200, path);
    t.strictSame(reply.json, { data: {} });
    t.equal(reply.headers['cache-control'], cacheControl, path);
    t.equal(reply.headers['access-control-allow-origin'], '*');
    t.match(reply.headers['access-control-allow-methods'], /PUT/);
    t.match(reply.headers['access-control-allow-headers'], /x-api-key/);
  }
});

t.test('each client route sets CORS headers on its preflight and its errors', async (t) => {
  t.ok(gatewayRoutes.size > 0);
  for (const route of gatewayRoutes) {
    const [method = '', pattern = ''] = route.split(' ');
    const path = pattern.replace(':workspaceId', workspaceId).replace(':responseId', 'r1');
    const preflight = await api.client('OPTIONS', path);
    t.equal(preflight.status, 200, route);
    t.equal(preflight.headers['access-control-allow-origin'], '*', route);
    const reply = await api.client(method as 'GET', path.replace(workspaceId, 'nosuchworkspace'), {});
    t.ok(reply.status >= 400, route);
    t.equal(reply.headers['access-control-allow-origin'], '*', route);
  }
});

t.test('ignores a slash at the end of a path', async (t) => {
  t.equal((await api.client('GET', '/health/')).status, 200);
  t.equal((await api.manage('GET', '/api/v1/management/me/')).status, 200);
});

t.test('v3 returns the client’s request id if it is harmless, and otherwise a UUID', async (t) => {
  const ask = async (id: string) =>
    (await api.client('GET', '/api/v3/x', undefined, { 'x-request-id': id })).headers['x-request-id'];
  t.equal(await ask('abc-1'), 'abc-1');
  t.match(await ask('a b'), /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
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
