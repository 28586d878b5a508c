import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';

/** Ports below those that the kernel gives to connections (from 32768 on Linux), and above those of usual servers. */
const PORT_MIN = 10_000;
const PORT_END = 32_000;
/** Ports of a block. One holds the block, and the others are given away. */
const BLOCK_PORTS = 50;
const BLOCKS = (PORT_END - PORT_MIN) / BLOCK_PORTS;

/** Sockets that hold the blocks until this process ends, however it ends. */
const held: Server[] = [];
let next = 0;
let end = 0;

/**
 * Returns a TCP port on loopback that nobody listens on, a new one with each call. It stays free until it is used:
 * connections do not take ports of this range, and each process of a run holds blocks of its own.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    if (next === end) await holdBlock();
    else {
      const port = next++;
      const probe = await listening(port);
      if (probe !== null) {
        probe.close();
        await once(probe, 'close');
        return port;
      }
    }
  }
}

/** Tells whether a server listens on this port. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** @throws Error when somebody listens on the first port of every block */
async function holdBlock(): Promise<void> {
  const start = process.pid % BLOCKS;
  for (let i = 0; i < BLOCKS; i++) {
    const first = PORT_MIN + ((start + i) % BLOCKS) * BLOCK_PORTS;
    const holder = await listening(first);
    if (holder !== null) {
      held.push(holder.unref());
      [next, end] = [first + 1, first + BLOCK_PORTS];
      return;
    }
  }
  throw new Error(`Ports ${PORT_MIN} to ${PORT_END} are taken; end what listens there`);
}

/** null if the port is in use. */
function listening(port: number): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
