/** Starts the programs of one measurement. They end with it, at the latest together with the bench. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { accepts } from '#test/support/ports.ts';
import { type Started, startProgram } from '#test/support/process.ts';
import { makeFolder, removeFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { PATH } from './programs.ts';

interface StartOptions {
  /** Added to a minimal environment. */
  readonly env?: Record<string, string>;
  readonly cwd?: string;
}

const open = new Set<Processes>();
let isOver = false;

export class Processes implements Owner {
  /** Folder for configuration files and sockets. */
  readonly folder = makeFolder();
  readonly #ends: (() => unknown)[] = [() => removeFolder(this.folder)];

  constructor() {
    open.add(this);
  }

  /**
   * @param ready the port on which the program listens, or what it prints once it is ready
   * @throws Error with the output of the program if it ends before it is ready
   */
  async start(
    command: readonly string[],
    ready: number | RegExp,
    { env = {}, cwd = this.folder }: StartOptions = {},
  ): Promise<Started> {
    if (isOver) throw new Error('the bench has been ended');
    const started = startProgram(command, { PATH, ...env }, cwd);
    this.teardown(() => started.stop('SIGKILL'));
    if (typeof ready === 'number') await until(() => accepts(ready), `${command[0]} listens`, started);
    else await started.until(ready);
    return started;
  }

  /** Starts a script with the Node that runs the bench. */
  node(args: readonly string[], ready: number | RegExp, options?: StartOptions): Promise<Started> {
    return this.start([process.execPath, ...args], ready, options);
  }

  /** Writes a file. @returns its path */
  file(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  teardown(end: () => unknown): void {
    this.#ends.push(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    open.delete(this);
    for (const end of this.#ends.splice(0).reverse()) await end();
  }
}

/** Ends all programs that run. No other starts after it. */
export async function endAll(): Promise<void> {
  isOver = true;
  await Promise.all([...open].map((one) => one[Symbol.asyncDispose]()));
}
