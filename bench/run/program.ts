/** Runs a program to its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** @returns its output @throws Error with its error output when it fails */
export async function runProgram(
  program: string,
  args: readonly string[],
  { input = '', onStart = (_pid: number): void => undefined } = {},
): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const abandon = (): boolean => child.kill('SIGKILL');
  process.once('exit', abandon);
  onStart(child.pid ?? 0);
  child.stdin.end(input);
  const ended = once(child, 'close');
  const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  process.off('exit', abandon);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors.slice(-500)}`);
  return out;
}
