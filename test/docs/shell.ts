/** A shell for the blocks of the pages: one process, so that variables of one block exist in the next. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { compileCache } from '#test/support/process.ts';

interface Shell {
  /** @returns the stdout of the block; rejects if its last command failed */
  run(block: string): Promise<string>;
}

/** @param cwd working directory of the blocks; the shell ends with the test */
export function startShell(owner: Owner, cwd: string, env: Readonly<Record<string, string>> = {}): Shell {
  const child = spawn('bash', ['--noprofile', '--norc', '-u'], {
    cwd,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: cwd,
      ...compileCache,
      // npx caches its links here. It would leave them in the folder itself otherwise.
      npm_config_cache: process.env.npm_config_cache ?? join(process.env.HOME ?? '', '.npm'),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let out = '';
  let errors = '';
  let blocks = 0;
  let look = (): void => undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
    look();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
    look();
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  owner.teardown(() => {
    child.stdin.end('exit\n');
    return ended;
  });
  return {
    run(block) {
      const marker = `end-of-block-${++blocks}`;
      const result = new Promise<string>((resolve, reject) => {
        look = () => {
          const found = new RegExp(`\\n${marker} (\\d+)\\n`).exec(out);
          // The marker is in both pipes, because one may be read before the other.
          if (found === null || !errors.includes(`${marker}\n`)) return;
          const text = out.slice(0, found.index);
          out = '';
          if (found[1] === '0') resolve(text);
          else reject(new Error(`exit code ${found[1]} of:\n${block}\n${text}\n${errors}`));
        };
        ended.then(() => reject(new Error(`the shell ended in:\n${block}\n${out}\n${errors}`)));
      });
      // Braces keep variables. Without a stdin of its own, a command would read the rest of the script.
      child.stdin.write(`{ ${block}\n} < /dev/null; printf '\\n%s %s\\n' ${marker} $?; echo ${marker} >&2\n`);
      return result;
    },
  };
}
