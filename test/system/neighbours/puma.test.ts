/** A Rack application on Puma: paths as they were sent, streams. */

import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
copyProgram('rack.ru', join(folder, 'config.ru'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['puma', '-e', 'production', '-t', '1:4', '-b', `tcp://127.0.0.1:${port}`, 'config.ru'],
});

askForPage(t, neighbour, 'Puma');

t.test('an upload', async (t) => {
  const headers = { 'content-type': 'multipart/form-data; boundary=x' };
  const body = Buffer.concat([
    Buffer.from('--x\r\nContent-Disposition: form-data; name="f"; filename="a b.png"\r\n\r\n'),
    Buffer.alloc(300_000, 'bytes of a picture '),
    Buffer.from('\r\n--x--\r\n'),
  ]);
  for (const pieces of [undefined, 50_000]) {
    const sent = { method: 'POST', headers, body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/upload', sent));
    t.match(reply, { status: 200, body: /^[0-9a-f]{64} a b\.png$/ });
  }
});
