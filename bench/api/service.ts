/** The API's own process on a database of the bench, and calls to it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_MS = 30_000;
/** Of these only one is used while calls come one after the other. */
const CONNECTIONS = 8;
/** Where webhooks of the bench point. */
export const receiverHost = '127.0.0.1';

export const workspaceId = 'cworkspaceofthebench00000';
export const apiKey = 'fbk_of_the_bench';

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

export interface Service {
  /** Such as `http://127.0.0.1:4000`. */
  readonly address: string;
  /** Its first process; the workers are its children. */
  readonly pid: number;
  /** @returns the reply's JSON @throws Error for anything but 200: such a figure would be of another job */
  call(call: Call): Promise<unknown>;
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly databaseUrl: string;
  /** For uploads, of which there are none. */
  readonly folder: string;
  readonly workers: number;
}

export async function startService({ databaseUrl, folder, workers }: ServiceOptions): Promise<Service> {
  const child = spawn(process.execPath, ['api/main.ts'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH ?? '',
      API_PORT: '0',
      API_WORKERS: String(workers),
      DATABASE_URL: databaseUrl,
      STORAGE_PATH: join(folder, 'uploads'),
      WEBHOOK_ALLOWED_TARGETS: receiverHost,
      RATE_LIMITING_DISABLED: '1',
      LOG_LEVEL: 'warn',
      BOOTSTRAP_WORKSPACE_ID: workspaceId,
      BOOTSTRAP_API_KEY: apiKey,
      BOOTSTRAP_PASSWORD: 'Password1',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const abandon = (): boolean => child.kill('SIGKILL');
  process.once('exit', abandon);
  const address = await addressOf(child);
  const client = new Pool(address, { connections: CONNECTIONS });
  return {
    address,
    pid: child.pid ?? 0,
    async call({ body, method, path }) {
      const reply = await client.request({
        method,
        path,
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await reply.body.text();
      if (reply.statusCode !== 200) {
        throw new Error(`${method} ${path} was answered with ${reply.statusCode}: ${text}`);
      }
      return JSON.parse(text);
    },
    async stop() {
      await client.close();
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      process.off('exit', abandon);
    },
  };
}

async function addressOf(child: ChildProcess): Promise<string> {
  const { promise, reject, resolve } = Promise.withResolvers<string>();
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    const address = /API ready on (\S+)/.exec(output)?.[1];
    if (address !== undefined) resolve(address);
  });
  child.once('exit', (code) => reject(new Error(`The API ended with ${code} before it was ready`)));
  const timer = setTimeout(() => reject(new Error(`The API was not ready in ${READY_MS} ms`)), READY_MS);
  try {
    return await promise;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
