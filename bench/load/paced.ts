/**
 * A fixed number of requests a second, each at its own moment, over kept-alive connections: for the latency that a
 * visitor sees on a machine that is not saturated. A request that finds every connection taken opens another one, so
 * a slow target cannot slow the pace and hide its own waits.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from '../scenarios.ts';
import { quantile } from '../statistics.ts';
import type { Driver } from './load.ts';

const CONNECTIONS_MAX = 512;
const GRACE_MS = 500;

export const paced: Driver = async (port, scenario, seconds) => {
  const client = new PacedClient(port, requestOf(scenario, port));
  const began = performance.now();
  const total = Math.round((scenario.rate ?? 1000) * seconds);
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * (scenario.rate ?? 1000)));
    // Never a burst: what the clock owes is sent one by one, each measured from its own moment.
    for (; sent < due; sent++) client.send();
    await sleep(1);
  }
  await sleep(GRACE_MS);
  client.close();
  return {
    requests: client.latenciesMs.length,
    seconds,
    refused: client.refused,
    errors: total - client.latenciesMs.length,
    p50Ms: quantile(client.latenciesMs, 0.5),
    p99Ms: quantile(client.latenciesMs, 0.99),
  };
};

function requestOf(scenario: Scenario, port: number): Buffer {
  return Buffer.from(`${scenario.method} ${scenario.path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
}

class PacedClient {
  readonly latenciesMs: number[] = [];
  refused = 0;
  readonly #port: number;
  readonly #request: Buffer;
  readonly #idle: Socket[] = [];
  readonly #open = new Set<Socket>();

  constructor(port: number, request: Buffer) {
    this.#port = port;
    this.#request = request;
  }

  send(): void {
    const socket = this.#idle.pop() ?? this.#connect();
    if (socket === null) return;
    const began = performance.now();
    let reply = '';
    socket.on('data', (chunk: Buffer) => {
      reply += chunk.toString('latin1');
      if (!isWhole(reply)) return;
      this.latenciesMs.push(performance.now() - began);
      if (!reply.startsWith('HTTP/1.1 2')) this.refused++;
      socket.removeAllListeners('data');
      this.#idle.push(socket);
    });
    socket.write(this.#request);
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #connect(): Socket | null {
    if (this.#open.size >= CONNECTIONS_MAX) return null;
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#open.delete(socket));
    return socket;
  }
}

/** Replies of the bench's upstream have a length, always. */
function isWhole(reply: string): boolean {
  const head = reply.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = Number(/^content-length: *(\d+)/im.exec(reply)?.[1] ?? 0);
  return reply.length >= head + 4 + length;
}
