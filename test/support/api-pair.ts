/** Starts two API processes on one database and one folder of files, as behind a load balancer. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { freePort } from './ports.ts';
import { type Started, start } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface Pair {
  readonly processes: readonly [Started, Started];
  readonly bases: readonly [string, string];
}

/** Starts both at once, and resolves when both are ready. The key is that of the workspace `ws1`. */
export async function startPair(
  t: Test,
  databaseUrl: string,
  key: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Pair> {
  const folder = temporaryFolder(t);
  const ports = [await freePort(), await freePort()] as const;
  const begin = (port: number): Started =>
    start(['api/main.ts'], {
      API_PORT: String(port),
      DATABASE_URL: databaseUrl,
      STORAGE_PATH: join(folder, 'uploads'),
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
      BOOTSTRAP_API_KEY: key,
      BOOTSTRAP_PASSWORD: 'Password1',
      LOG_LEVEL: 'error',
      ...env,
    });
  const processes = [begin(ports[0]), begin(ports[1])] as const;
  t.teardown(() => Promise.all(processes.map((one) => one.stop('SIGKILL'))));
  await Promise.all(processes.map((one) => one.until(/API ready/)));
  return { processes, bases: [`http://127.0.0.1:${ports[0]}`, `http://127.0.0.1:${ports[1]}`] };
}
