/** The API's own process on a fresh database, watched from within. Limits are off, so that all requests get through. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Vitals } from './watch.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_MS = 60_000;

export const workspaceId = 'cworkspaceofthesoak000000';
export const apiKey = 'fbk_of_the_soak';

export interface HostileApi {
  readonly origin: string;
  readonly pid: number;
  /** How it ended by itself; null while it runs. */
  ending(): string | null;
  stop(): Promise<void>;
}

/** @param onVitals once a second */
export async function startHostileApi(
  folder: string,
  onVitals: (vitals: Vitals) => void,
): Promise<HostileApi> {
  const child = spawn(process.execPath, ['--import', './bench/hostile/watch.ts', 'api/main.ts'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH ?? '',
      API_PORT: '0',
      DATABASE_URL: `file:${join(folder, 'floodgate.sqlite')}`,
      STORAGE_PATH: join(folder, 'uploads'),
      DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
      RATE_LIMITING_DISABLED: '1',
      LOG_LEVEL: 'error',
      BOOTSTRAP_WORKSPACE_ID: workspaceId,
      BOOTSTRAP_API_KEY: apiKey,
      BOOTSTRAP_PASSWORD: 'Password1',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  child.on('message', (message) => onVitals(message as Vitals));
  let ended: string | null = null;
  const exit = once(child, 'exit').then(([code, signal]) => {
    ended = `with ${code ?? signal}`;
  });
  const abandon = (): boolean => child.kill('SIGKILL');
  process.once('exit', abandon);
  const origin = await addressOf(child);
  return {
    origin,
    pid: child.pid ?? 0,
    ending: () => ended,
    async stop() {
      child.kill('SIGTERM');
      await exit;
      process.off('exit', abandon);
    },
  };
}

async function addressOf(child: ChildProcess): Promise<string> {
  const { promise, reject, resolve } = Promise.withResolvers<string>();
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-10_000);
    const address = /API ready on (\S+)/.exec(output)?.[1];
    if (address !== undefined) resolve(address);
  });
  child.once('exit', (code) => reject(new Error(`The API ended with ${code} before it was ready`)));
  const timer = setTimeout(() => reject(new Error(`The API was not ready in ${READY_MS} ms`)), READY_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
