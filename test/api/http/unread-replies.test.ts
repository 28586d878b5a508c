/** A reply whose client does not read does not stay in memory. */
import { pino } from 'pino';
import t from 'tap';
import { buildApp } from '#api/app.ts';
import { startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

const api = await startApi(t);
const app = await buildApp(api.context, pino({ level: 'silent' }), () => true, 500);
const address = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
t.teardown(() => app.close());
const questions = [{ id: 'q1', type: 'openText', headline: 'x'.repeat(950_000) }];
for (let i = 0; i < 2; i++) {
  await api.manage('POST', '/api/v1/management/surveys', surveyBody({ type: 'website', questions }));
}
const state = `/api/v1/client/${workspaceId}/environment`;

t.test('a reply of which nothing is read is cut, and a slow request beside it is not', async (t) => {
  const slow = sendRaw(
    Number(address.port),
    `POST /api/v1/client/${workspaceId}/displays HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{`,
  );
  // The kernel holds some MB, so one reply would not be enough.
  const unread = sendRaw(Number(address.port), `GET ${state} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(8));
  unread.socket.pause();
  const connections = () =>
    new Promise<number>((resolve) => app.server.getConnections((_, count) => resolve(count)));
  await until(async () => (await connections()) === 2, 'both are connected');
  await until(async () => (await connections()) === 1, 'the one that does not read is cut');
  slow.socket.write('}');
  t.match(await slow.until(/\r\n\r\n/), /^HTTP\/1.1 400/);
});
