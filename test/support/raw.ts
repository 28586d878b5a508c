/** Sends HTTP that no client library would send. */
import { connect, type Socket } from 'node:net';
import { reportWhileWaiting } from './until.ts';

export interface RawConnection {
  readonly socket: Socket;
  /** Everything received so far, latin1. */
  received(): string;
  /** Resolves with everything received once it matches; rejects when the connection ends before. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves with everything received once the peer has closed. */
  ended(): Promise<string>;
}

/** Connects and sends `text` (latin1). @param localAddress the client's, on loopback */
export function sendRaw(port: number, text: string, localAddress = '127.0.0.1'): RawConnection {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  let data = '';
  let closed = false;
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of listeners) listener();
  };
  socket.on('data', (chunk) => {
    data += chunk.toString('latin1');
    notify();
  });
  socket.on('error', () => {
    // A reset is one way of being closed; 'close' follows.
  });
  socket.on('close', () => {
    closed = true;
    notify();
  });
  socket.write(text, 'latin1');

  const wait = (isDone: () => boolean, what: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const finish = (error?: Error): void => {
        stopReports();
        listeners.delete(check);
        if (error) reject(error);
        else resolve(data);
      };
      const check = (): void => {
        if (isDone()) finish();
        else if (closed) finish(new Error(`closed before ${what}; received: ${data}`));
      };
      const stopReports = reportWhileWaiting(() => `for ${what} of a connection; received: ${data}`);
      listeners.add(check);
      check();
    });
  return {
    socket,
    received: () => data,
    until: (pattern) => wait(() => pattern.test(data), String(pattern)),
    ended: () => wait(() => closed, 'the end'),
  };
}
