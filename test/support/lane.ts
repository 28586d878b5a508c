/** A client that sends one request at a time. It parses by hand, because it sends tens of thousands of them. */
import { connect, type Socket } from 'node:net';

interface LaneReply {
  readonly status: number;
  /** Header section in lower case. */
  readonly head: string;
}

export class Lane {
  readonly #port: number;
  #socket: Socket | null = null;
  #data = '';
  #isHead = false;
  #pending: { resolve(reply: LaneReply): void; reject(error: Error): void } | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** @param text a whole request, latin1 */
  ask(text: string): Promise<LaneReply> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#isHead = text.startsWith('HEAD ');
      this.#socket ??= this.#connect();
      this.#socket.write(text, 'latin1');
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#data = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.#data += chunk;
      this.#read(socket);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#pending?.reject(new Error(`closed instead of a reply: ${this.#data}`));
    });
    return socket;
  }

  #read(socket: Socket): void {
    const end = this.#data.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = this.#data.slice(0, end).toLowerCase();
    const length = this.#isHead ? 0 : Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
    if (this.#data.length < end + 4 + length) return;
    this.#data = this.#data.slice(end + 4 + length);
    if (head.includes('\r\nconnection: close')) {
      this.#socket = null;
      socket.destroy();
    }
    const pending = this.#pending;
    this.#pending = null;
    pending?.resolve({ status: Number(head.slice(9, 12)), head });
  }
}
