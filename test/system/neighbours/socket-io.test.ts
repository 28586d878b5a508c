/** Socket.IO, which polls first and then changes to WebSocket. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { folderWith } from '#test/runner/npm-programs.ts';
import { outputOf, startNeighbour } from '#test/support/neighbour.ts';

const folder = folderWith(t, 'socket.io');
writeFileSync(
  join(folder, 'server.cjs'),
  `const { Server } = require('socket.io');
const io = new Server({ maxHttpBufferSize: 1e7 });
io.on('connection', (socket) => {
  socket.emit('hello', socket.handshake.query.name);
  socket.on('echo', (value, answer) => answer(value));
});
io.of('/rooms').on('connection', (socket) => socket.emit('hello', 'room'));
io.listen(Number(process.argv[2]));
`,
);
/** Writes what it sees as JSON: the transports in turn, and the answers. */
writeFileSync(
  join(folder, 'client.cjs'),
  `const { io } = require('socket.io-client');
const [origin, transports] = process.argv.slice(2);
const seen = [];
let greeting;
const socket = io(origin, { transports: transports.split(','), query: { name: 'a/b c' }, reconnection: false });
socket.on('connect_error', (error) => { console.log(JSON.stringify([...seen, String(error)])); process.exit(); });
socket.on('hello', (name) => { greeting = name; });
let upgraded;
socket.io.on('open', () => {
  const { engine } = socket.io;
  seen.push(engine.transport.name);
  upgraded = new Promise((resolve) => {
    engine.once('upgrade', ({ name }) => resolve(name));
    engine.once('upgradeError', (error) => resolve(String(error)));
  });
});
socket.on('connect', async () => {
  if (transports.includes(',')) seen.push(await upgraded);
  seen.push(await socket.emitWithAck('echo', { text: 'Günter', bytes: Buffer.alloc(3, 1) }));
  seen.push((await socket.emitWithAck('echo', 'x'.repeat(200000))).length);
  const room = socket.io.socket('/rooms');
  room.on('hello', (name) => {
    seen.push(name);
    console.log(JSON.stringify([...seen, greeting]));
    process.exit();
  });
  room.connect();
});
`,
);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [process.execPath, 'server.cjs', String(port)],
});

for (const transports of ['polling,websocket', 'polling', 'websocket']) {
  t.test(transports, async (t) => {
    const seen = await neighbour.same(t, 'transports and answers', async ({ origin }) =>
      JSON.parse(await outputOf([process.execPath, 'client.cjs', origin, transports], { cwd: folder })),
    );
    const names: unknown[] = seen.filter((value: unknown) => typeof value === 'string');
    t.strictSame(names.sort(), [...transports.split(','), 'a/b c', 'room'].sort());
  });
}
