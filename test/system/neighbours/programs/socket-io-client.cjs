const { io } = require('socket.io-client');
const [origin, transports] = process.argv.slice(2);
const seen = [];
let greeting;
const socket = io(origin, {
  transports: transports.split(','),
  query: { name: 'a/b c' },
  reconnection: false,
});
socket.on('connect_error', (error) => {
  console.log(JSON.stringify([...seen, String(error)]));
  process.exit();
});
socket.on('hello', (name) => {
  greeting = name;
});
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
