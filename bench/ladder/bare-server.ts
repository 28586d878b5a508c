/** The lowest rung: `node bare-server.ts PORT LIMIT`. It answers each read with a fixed text: 200, and 429 beyond the limit. */
import { createServer } from 'node:net';

const [port = 0, limit = 0] = process.argv.slice(2).map(Number);
/** The reply is as long as a 429 of the gateway. */
const BODY = 'x'.repeat(1160);
const [admitted, denied] = ['200 OK', '429 Too Many Requests'].map((status) =>
  Buffer.from(`HTTP/1.1 ${status}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`, 'latin1'),
) as [Buffer, Buffer];
let asked = 0;

createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.on('data', () => socket.write(asked++ < limit ? admitted : denied));
}).listen(port, '127.0.0.1');

// Node writes the profile only if the process ends by itself.
process.once('SIGTERM', () => process.exit());
