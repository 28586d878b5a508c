/** Each operation of the admin API replies as described, and the page of the docs lists them all. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { codeIn, readPage, tableOf } from '#test/docs/pages.ts';
import { type Operation, readDescription } from '#test/support/description.ts';
import { eventually } from '#test/support/gateway-process.ts';
import { startOperator } from '#test/support/operator.ts';
import { projectRoot } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';

const POLICY = readFileSync(join(projectRoot, 'config/policies.yaml'), 'utf8');
const UPLOAD = `${POLICY}192.0.2.1 - - [22/Nov/2026:08:00:00 +0000] "GET / HTTP/1.1" 200 2 "-" "a"\n`;
const BODIES: Readonly<Record<string, object>> = {
  'POST /api/explain': { request: 'GET /items' },
  'POST /api/ban': { subject: '192.0.2.7', seconds: 60, reason: 'a test' },
  'POST /api/addresses': { seconds: 60 },
  'POST /api/shadow': { policy: 'items', seconds: 60 },
  'POST /api/unshadow': { policy: 'items' },
  'POST /api/session': { token: 'secret' },
  'POST /api/doctor/probe': {},
};

/** Rejects undocumented fields here, although clients must tolerate new ones. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const whole = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]));
  const isObject = whole.type === 'object' && 'properties' in whole;
  return isObject ? { ...whole, additionalProperties: false } : whole;
}

t.test('every operation replies as described', async (t) => {
  const redis = await startRedis(t);
  const { admin, send, gateway } = await startOperator(t, {
    GATEWAY_ADMIN_TOKEN: 'secret',
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
  });
  const authorization = 'Bearer secret';
  const get = async (path: string): Promise<Record<string, unknown>> =>
    (await fetch(admin + path, { headers: { authorization } })).json() as Promise<Record<string, unknown>>;
  await send(4);
  const refused = await fetch(`${gateway}/items`);
  const id = refused.headers.get('x-gateway-decision') ?? '';
  await eventually(
    'the refusal is kept',
    () => get(`/api/decisions/${id}`),
    (found) => found.id === id,
  );

  const document = await get('/api/openapi.json');
  t.match(document, { openapi: '3.1.0', info: { title: 'Floodgate admin API' } });
  const described = readDescription(closed(document) as Record<string, unknown>);
  const ask = async (
    { method, path, name, body, reads }: Operation,
    headers: Record<string, string>,
    sent?: string,
  ) => {
    const isRead = method === 'GET' || method === 'DELETE';
    const isUpload = reads.includes('application/octet-stream');
    const type = isUpload ? 'application/octet-stream' : 'application/json';
    const query = isUpload ? `?policyBytes=${Buffer.byteLength(POLICY)}` : '';
    const json = JSON.stringify(BODIES[name] ?? (body === null ? {} : { subject: '192.0.2.7' }));
    const reply = await fetch(admin + path.replace('{id}', id) + query, {
      method,
      headers: { ...(isRead ? {} : { 'content-type': type }), ...headers },
      body: isRead ? null : (sent ?? (isUpload ? UPLOAD : json)),
    });
    const isStream = reply.headers.get('content-type') === 'text/event-stream';
    const text = isStream ? '' : await reply.text();
    if (isStream) await reply.body?.cancel();
    return { status: reply.status, headers: Object.fromEntries(reply.headers), text };
  };
  t.ok(described.operations.length >= 17, `${described.operations.length} operations`);
  for (const operation of described.operations) {
    const { name, path } = operation;
    const reply = await ask(operation, { authorization });
    t.ok([200, 204].includes(reply.status), `${name}: ${reply.status} ${reply.text.slice(0, 200)}`);
    if (path === '/api/live') t.equal(reply.headers['content-type'], 'text/event-stream');
    else t.strictSame(described.problemsOf(operation, reply), [], name);
    t.type(operation.whole.summary, 'string');

    const refusals = [
      await ask(operation, { authorization: 'Bearer wrong' }),
      await ask(operation, { origin: 'https://evil.example' }),
      ...(operation.body === null ? [] : [await ask(operation, { authorization }, '{"unknown":1}')]),
      ...(operation.reads.includes('application/octet-stream')
        ? [
            await ask(operation, { authorization }, 'short'),
            await ask(operation, { authorization }, `${POLICY}x`),
          ]
        : []),
    ].filter(({ status }) => status >= 400);
    for (const reply of refusals)
      t.strictSame(described.problemsOf(operation, reply), [], `${name}: ${reply.status}`);
  }
  for (const path of [
    '/api/decisions/short',
    `/api/decisions/${'0'.repeat(20)}`,
    '/api/decisions?unknown=1',
  ]) {
    const [operation] = described.operations.filter(
      (one) => one.path === (path.includes('?') ? '/api/decisions' : '/api/decisions/{id}'),
    );
    if (operation === undefined) throw new Error(path);
    const reply = await fetch(admin + path, { headers: { authorization } });
    const sent = {
      status: reply.status,
      headers: Object.fromEntries(reply.headers),
      text: await reply.text(),
    };
    t.ok(sent.status >= 400);
    t.strictSame(described.problemsOf(operation, sent), [], path);
  }

  const routes = tableOf(readPage('docs/operating.md'), 'Route', 'Body').map(([route = '']) => codeIn(route));
  t.strictSame(
    routes.map((route) => route.replace('ID', '{id}').replace(/\?.*/, '')).sort(),
    described.operations.map(({ name }) => name).sort(),
    'docs/operating.md lists exactly these operations',
  );
});
