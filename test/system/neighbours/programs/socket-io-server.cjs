const { Server } = require('socket.io');
const io = new Server({ maxHttpBufferSize: 1e7 });
io.on('connection', (socket) => {
  socket.emit('hello', socket.handshake.query.name);
  socket.on('echo', (value, answer) => answer(value));
});
io.of('/rooms').on('connection', (socket) => socket.emit('hello', 'room'));
io.listen(Number(process.argv[2]));
