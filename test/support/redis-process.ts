/** Starts redis-server as a process of the test: a server, a node of a Cluster or a sentinel. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * @param args of redis-server
 * @param isReady found in its log once it serves
 */
export async function launchRedis(
  args: readonly string[],
  isReady = /Ready to accept connections/,
): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    let log = '';
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${log}`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      if (isReady.test(log)) resolve();
    });
  });
  return child;
}

/** Sends SIGKILL and waits until it has ended. */
export async function endRedis(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** Arguments that every server of a test has: loopback only, nothing on disk. */
export function memoryOnly(port: number): readonly string[] {
  return ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
}
