/** FastAPI on uvicorn: redirects to the slash, streams, forms of paths, WebSocket. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
writeFileSync(
  join(folder, 'app.py'),
  `from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import StreamingResponse

app = FastAPI()

@app.get('/items/')
def items(request: Request, page: int = 1):
    return {'page': page, 'address': str(request.url)}

@app.get('/no-slash')
def no_slash(request: Request):
    return {'address': str(request.url)}

@app.get('/files/{rest:path}')
def files(request: Request, rest: str):
    return {'rest': rest, 'raw': request.scope['raw_path'].decode()}

@app.post('/echo')
async def echo(request: Request):
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return {'size': size, 'type': request.headers.get('content-type')}

@app.get('/stream')
def stream():
    return StreamingResponse(('data: %d\\n\\n' % i for i in range(100)), media_type='text/event-stream')

@app.websocket('/ws')
async def ws(socket: WebSocket):
    await socket.accept()
    while True:
        await socket.send_text('heard ' + await socket.receive_text())
`,
);
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

t.test('an address with and without its slash', async (t) => {
  const replies = await neighbour.same(t, 'it is missing', (way) => follow(way, '/items?page=2'));
  t.match(replies, [{ status: 307 }, { status: 200, body: '"page":2' }]);
  const other = await neighbour.same(t, 'it is too much', (way) => follow(way, '/no-slash/'));
  t.match(other, [{ status: 307 }, { status: 200 }]);
});

t.test('paths arrive as they were sent', async (t) => {
  for (const path of [
    '/files/a/b/',
    '/files/a%2Fb',
    '/files/50%25de',
    '/files/a//b',
    '/files/a%7Eb',
    '/files/a;v=1/b',
  ])
    t.match(await neighbour.same(t, path, (way) => ask(way, path)), { status: 200, body: `"raw":"${path}"` });
});

t.test('bodies with a length and without, wrong input, a stream of events', async (t) => {
  const body = Buffer.alloc(200_000, 'x');
  for (const pieces of [undefined, 50_000]) {
    const sent = { method: 'POST', body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/echo', sent));
    t.match(reply, { status: 200, body: '"size":200000' });
  }
  t.equal((await neighbour.same(t, 'wrong input', (way) => ask(way, '/items/?page=x'))).status, 422);
  t.match(await neighbour.same(t, 'events', (way) => ask(way, '/stream')), { body: /data: 99\n\n$/ });
  await neighbour.same(t, 'its own pages', (way) => ask(way, '/docs'));
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
