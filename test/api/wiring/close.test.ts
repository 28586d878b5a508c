/** The end of the app: requests that have arrived are answered, also those that the kernel still holds. */
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { sendRaw } from '#test/support/raw.ts';

const REQUEST = 'GET /api/v2/health HTTP/1.1\r\nhost: a\r\n\r\n';
const REPLY = /HTTP\/1\.1 200 OK\r\n[\s\S]*"main_database":true/;

async function listening(t: Test): Promise<{ readonly api: TestApi; readonly port: number }> {
  const api = await startApi(t);
  return { api, port: await api.listen() };
}

t.test('answers requests on kept connections that were not read yet, and closes them', async (t) => {
  const { api, port } = await listening(t);
  const kept = Array.from({ length: 8 }, () => sendRaw(port, REQUEST));
  for (const connection of kept) await connection.until(REPLY);
  for (const { socket } of kept) socket.write(REQUEST);
  const closed = api.app.close();
  for (const connection of kept) {
    const [, second = ''] = (await connection.ended()).split(/(?<=true}})/);
    t.match(second, REPLY);
    t.match(second, /connection: close/i);
  }
  await closed;
});

t.test('answers requests on connections that were not accepted yet', async (t) => {
  const { api, port } = await listening(t);
  const connections = Array.from({ length: 64 }, () => sendRaw(port, REQUEST));
  await Promise.all(connections.map(({ socket }) => once(socket, 'connect')));
  const closed = api.app.close();
  for (const connection of connections) t.match(await connection.ended(), REPLY);
  await closed;
});
