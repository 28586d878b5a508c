/** Run the command lines as a shell does. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runCli } from '#api/cli/program.ts';
import { Terminal } from '#shared/cli/terminal.ts';
import { projectRoot } from './process.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliRun {
  /** Where it runs; the project's folder unless given. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** The gateway's. */
export function floodgate(args: readonly string[], options: CliRun = {}): Promise<CliResult> {
  return run('gateway/cli/floodgate.mjs', args, options);
}

/** The API's, as a process. */
export function apiCli(args: readonly string[], options: CliRun = {}): Promise<CliResult> {
  return run('api/cli/main.ts', args, options);
}

/** The API's, in this process: what it does is the same, and it is there at once. */
export async function apiCommand(
  args: readonly string[],
  { cwd = projectRoot, env = {} }: Omit<CliRun, 'input'> = {},
): Promise<CliResult> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const said = Promise.all([text(stdout), text(stderr)]);
  const code = await runCli(args, { terminal: new Terminal({ stdout, stderr }), env, cwd, clock: Date.now });
  stdout.end();
  stderr.end();
  const [answer, errors] = await said;
  return { code, stdout: answer, stderr: errors };
}

function run(
  program: string,
  args: readonly string[],
  { cwd = projectRoot, env = {}, input }: CliRun,
): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [join(projectRoot, program), ...args],
      {
        cwd,
        maxBuffer: 64 * 1024 * 1024,
        env: {
          PATH: process.env.PATH ?? '',
          HOME: process.env.HOME ?? '',
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
          ...env,
        },
      },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      },
    );
    child.stdin?.end(input);
  });
}
