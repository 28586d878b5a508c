/**
 * Sends a fixed number of requests a second, each at its own time, over kept-alive connections. This measures the latency
 * of a server that is not saturated. A request that finds no idle connection opens another one, so a slow server cannot
 * slow down the load and hide its own delays.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Load, LoadResult } from './load.ts';
import { quantile } from './statistics.ts';

const CONNECTIONS_MAX = 512;
const GRACE_MS = 500;

export async function paced(
  load: Load,
  origin: string,
  seconds: number,
  perSecond: number,
): Promise<LoadResult> {
  const { host, hostname, port } = new URL(origin);
  const request = `${load.method} ${load.path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const latenciesMs: number[] = [];
  let refused = 0;
  const idle: Socket[] = [];
  const open = new Set<Socket>();

  const openSocket = (): Socket | null => {
    if (open.size >= CONNECTIONS_MAX) return null;
    const socket = connect({ port: Number(port), host: hostname, noDelay: true });
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    return socket;
  };
  const send = (): void => {
    const socket = idle.pop() ?? openSocket();
    if (socket === null) return;
    const began = performance.now();
    let reply = '';
    socket.on('data', (chunk: Buffer) => {
      reply += chunk.toString('latin1');
      if (!isComplete(reply)) return;
      latenciesMs.push(performance.now() - began);
      if (!reply.startsWith('HTTP/1.1 2')) refused++;
      socket.removeAllListeners('data');
      idle.push(socket);
    });
    socket.write(request);
  };

  const began = performance.now();
  const total = Math.round(perSecond * seconds);
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * perSecond));
    for (; sent < due; sent++) send();
    await sleep(1);
  }
  await sleep(GRACE_MS);
  for (const socket of open) socket.destroy();
  return {
    ...{ requests: latenciesMs.length, seconds, refused, errors: total - latenciesMs.length },
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  };
}

/** Replies of the bench's upstream always have a length. */
function isComplete(reply: string): boolean {
  const head = reply.indexOf('\r\n\r\n');
  const length = Number(/^content-length: *(\d+)/im.exec(reply)?.[1] ?? 0);
  return head >= 0 && reply.length >= head + 4 + length;
}
