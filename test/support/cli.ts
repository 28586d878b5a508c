/** Run the command `floodgate` as a shell does. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot } from './process.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const CLI = join(projectRoot, 'gateway/cli/floodgate.mjs');

/** @param cwd where it runs; the project's folder unless given */
export function floodgate(
  args: readonly string[],
  { cwd = projectRoot, env = {}, input }: { cwd?: string; env?: Record<string, string>; input?: string } = {},
): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [CLI, ...args],
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
