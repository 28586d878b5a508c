/** The cheapest exchange with the upstream: one connection for each client's, and the bytes of its reply are not read. */
import { connect, type Socket } from 'node:net';

export class BareUpstream {
  readonly #socket: Socket;
  #then: () => void = () => undefined;

  constructor(port: number, client: Socket) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', () => this.#then()).on('error', () => client.destroy());
    client.once('close', () => this.#socket.destroy());
  }

  /** The upstream's replies are short, so each arrives in one piece. */
  ask(request: Buffer | string, then: () => void): void {
    this.#then = then;
    this.#socket.write(request as string, 'latin1');
  }
}
