/** Starts the product as a page describes, on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { patiently } from '#test/support/store-budget.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

export interface Product {
  /** Origin of the gateway. */
  readonly origin: string;
  /** Everything written so far. */
  output(): string;
  /** Resolves once the output after `from` matches. */
  until(pattern: RegExp, from?: number): Promise<RegExpMatchArray>;
  stop(): Promise<void>;
}

/**
 * @param command from the page, such as `npm start`
 * @param env of this run, in addition to ports and a database
 */
export async function startProduct(
  owner: Owner,
  command: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Product> {
  const folder = temporaryFolder(owner);
  const [port, adminPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const child = spawn('bash', ['-c', command], {
    cwd: projectRoot,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      GATEWAY_PORT: String(port),
      GATEWAY_ADMIN_PORT: String(adminPort),
      GATEWAY_DRAIN_TIMEOUT_MS: '1000',
      API_PORT: String(apiPort),
      PUBLIC_URL: `http://localhost:${port}`,
      DATABASE_URL: `file:${join(folder, 'floodgate.sqlite')}`,
      STORAGE_PATH: join(folder, 'uploads'),
      ...patiently(env),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, so that npm, its shell and the program stop together, as with Ctrl-C.
    detached: true,
  });
  const product = follow(child, `http://localhost:${port}`);
  owner.teardown(() => product.stop());
  await product.until(/Gateway ready/);
  return product;
}

function follow(child: ChildProcess, origin: string): Product {
  let text = '';
  const looks = new Set<() => void>();
  const collect = (chunk: Buffer): void => {
    text += chunk.toString();
    for (const look of looks) look();
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    origin,
    output: () => text,
    until(pattern, from = 0) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = text.slice(from).match(pattern);
          if (found === null) return;
          looks.delete(look);
          resolve(found);
        };
        looks.add(look);
        closed.then(() => reject(new Error(`ended before ${pattern}:\n${text}`)));
        look();
      });
    },
    async stop() {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, 'SIGINT');
      }
      await closed;
    },
  };
}

/** Returns header fields and numbers of seconds in comparable form: values that differ between runs become `N`. */
export function comparable(head: string): readonly string[] {
  return head
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map((line) =>
      line
        .replace(/^(Retry-After|x-ratelimit-reset): \d+$/i, '$1: N')
        .replaceAll(/\bt=\d+/g, 't=N')
        .replaceAll(/\bw=\d+/g, 'w=N'),
    );
}
