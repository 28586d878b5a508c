/** Runs the command lines like a shell. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Terminal } from '#shared/cli/terminal.ts';
import { compileCache, projectRoot } from './process.ts';

interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface CliRun {
  /** The working directory; by default the project's folder. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs the gateway's command in a process. */
export function floodgate(args: readonly string[], options: CliRun = {}): Promise<CliResult> {
  return run('gateway/cli/floodgate.mjs', args, options);
}

let running: Promise<unknown> = Promise.resolve();

/**
 * Runs the gateway's command in this process, which is faster. Only one call may run at a time, because a process has
 * one working directory. Help, standard input and gateways need a process of their own.
 */
export function floodgateCommand(
  args: readonly string[],
  options: Omit<CliRun, 'input'> = {},
): Promise<CliResult> {
  const result = running.then(() => floodgateHere(args, options));
  running = result.catch(() => undefined);
  return result;
}

async function floodgateHere(
  args: readonly string[],
  { cwd = projectRoot, env = {} }: Omit<CliRun, 'input'>,
): Promise<CliResult> {
  // These are loaded here, because most files need one of the programs, or none.
  const { runCli } = await import('#gateway/cli/program.ts');
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return await listening((terminal) =>
      runCli(args, {
        terminal,
        env,
        now: Date.now,
        start: () => Promise.reject(new Error('A gateway is started as a process')),
      }),
    );
  } finally {
    process.chdir(before);
  }
}

async function listening(run: (terminal: Terminal) => Promise<number>): Promise<CliResult> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const said = Promise.all([text(stdout), text(stderr)]);
  const code = await run(new Terminal({ stdout, stderr }));
  stdout.end();
  stderr.end();
  const [answer, errors] = await said;
  return { code, stdout: answer, stderr: errors };
}

/** Runs the API's command in a process. */
export function apiCli(args: readonly string[], options: CliRun = {}): Promise<CliResult> {
  return run('api/cli/main.ts', args, options);
}

/** Runs the API's command in this process, which is faster. */
export async function apiCommand(
  args: readonly string[],
  { cwd = projectRoot, env = {} }: Omit<CliRun, 'input'> = {},
): Promise<CliResult> {
  const { runCli } = await import('#api/cli/program.ts');
  return listening((terminal) => runCli(args, { terminal, env, cwd, clock: Date.now }));
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
          ...compileCache,
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
