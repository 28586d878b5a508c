/** A plain `node:http` server, which counts nothing and asks no upstream: the least that a reply can cost on Node. */
import { join } from 'node:path';
import type { Processes, Started } from '#bench/run/processes.ts';
import { BENCH } from '#bench/run/programs.ts';
import type { Peer } from './peer.ts';

export function startEcho(
  processes: Processes,
  { port, workers, body }: { readonly port: number; readonly workers: number; readonly body: string },
): Promise<Started> {
  const args = [join(BENCH, 'run', 'echo.ts'), String(port), String(workers), body];
  return processes.node('the echo', args, { readyText: 'ready' });
}

export const ECHO: Peer = {
  name: 'echo',
  label: 'node:http alone',
  needs: [],
  start: ({ processes, port }) => startEcho(processes, { port, workers: 1, body: '{}' }),
};
