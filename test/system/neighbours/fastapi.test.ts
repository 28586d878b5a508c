/** FastAPI on uvicorn: redirects to the slash, streams, forms of paths, WebSocket. */
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
copyProgram('fastapi.py', join(folder, 'app.py'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    'uvicorn',
    '--app-dir',
    folder,
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    'app:app',
  ],
});

askForPage(t, neighbour, 'FastAPI');

t.test('bodies with a length and without', async (t) => {
  const body = Buffer.alloc(200_000, 'x');
  for (const pieces of [undefined, 50_000]) {
    const sent = { method: 'POST', body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/echo', sent));
    t.match(reply, { status: 200, body: '"size":200000' });
  }
});

t.test('WebSocket', async (t) => {
  const heard = await neighbour.same(t, 'messages', ({ host }) => {
    const socket = new WebSocket(`ws://${host}/ws`);
    return new Promise((resolve, reject) => {
      const messages: unknown[] = [];
      socket.onerror = () => reject(new Error('no connection'));
      socket.onopen = () => socket.send('one');
      socket.onmessage = ({ data }) => {
        messages.push(data);
        if (messages.length === 1) socket.send('two '.repeat(30_000));
        else socket.close();
      };
      socket.onclose = ({ wasClean }) => resolve({ messages, wasClean });
    });
  });
  t.match(heard, { messages: ['heard one', /^heard two/], wasClean: true });
});
