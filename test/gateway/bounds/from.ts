/** Clients with several addresses on one machine. All of 127.0.0.0/8 is loopback on Linux. */
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type Answer, type Sent, send } from '#test/gateway/proxy/exchange.ts';
import type { Owner } from '#test/support/gateway.ts';

export function sendFrom(address: string, port: number, path: string, options: Sent = {}): Promise<Answer> {
  return send(port, path, { agent: new Agent(), localAddress: address, ...options });
}

interface HostileClient {
  readonly sockets: readonly Socket[];
  /** Everything that each connection has received, latin1. */
  received(i: number): string;
  leave(): void;
}

/**
 * Opens connections from one address, each of which sends a text.
 *
 * @param isReading false to leave replies unread
 */
export function connectMany(
  owner: Owner,
  {
    address,
    port,
    count,
    text,
    isReading = true,
  }: {
    readonly address: string;
    readonly port: number;
    readonly count: number;
    readonly text: string;
    readonly isReading?: boolean;
  },
): HostileClient {
  const received: string[] = Array(count).fill('');
  const sockets = Array.from({ length: count }, (_, i) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    socket.on('error', () => socket.destroy());
    if (isReading) {
      socket.on('data', (chunk) => {
        received[i] += chunk.toString('latin1');
      });
    }
    socket.write(text, 'latin1');
    return socket;
  });
  const leave = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  owner.teardown(leave);
  return { sockets, received: (i) => received[i] ?? '', leave };
}
