/** A real HAProxy with a configuration of the test's own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Owner } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

/** @param port one of those that it listens on */
export async function startHaproxy(owner: Owner, config: string, port: number): Promise<void> {
  const child = spawn('haproxy', ['-db', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(child, 'exit');
  owner.teardown(() => {
    child.kill('SIGKILL');
    return ended;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`HAProxy has ended: ${said}`);
    return listens(port);
  });
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
