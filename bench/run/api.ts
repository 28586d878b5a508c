/** Starts the survey API as in production, on a database of the bench, without its own limits. */
import { join } from 'node:path';
import type { Processes, Started, StartOptions } from './processes.ts';
import { ROOT } from './programs.ts';

export const workspaceId = 'cworkspaceofthebench00000';
export const apiKey = 'fbk_of_the_bench';

export interface ApiOptions {
  readonly databaseUrl: string;
  readonly workers?: number;
  /** More settings. */
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeFlags?: readonly string[];
  readonly onMessage?: StartOptions['onMessage'];
}

export interface Api extends Started {
  /** Such as `http://127.0.0.1:4000`. */
  readonly origin: string;
}

export async function startApi(processes: Processes, options: ApiOptions): Promise<Api> {
  const { databaseUrl, workers = 1, env = {}, nodeFlags = [], onMessage } = options;
  const started = await processes.node('the API', [...nodeFlags, join(ROOT, 'api', 'main.ts')], {
    readyText: 'API ready on ',
    cwd: ROOT,
    env: {
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'node'),
      API_PORT: '0',
      API_WORKERS: String(workers),
      DATABASE_URL: databaseUrl,
      STORAGE_PATH: join(processes.directory, 'uploads'),
      RATE_LIMITING_DISABLED: '1',
      LOG_LEVEL: 'warn',
      BOOTSTRAP_WORKSPACE_ID: workspaceId,
      BOOTSTRAP_API_KEY: apiKey,
      BOOTSTRAP_PASSWORD: 'Password1',
      ...env,
    },
    ...(onMessage === undefined ? {} : { onMessage }),
  });
  const origin = /API ready on (\S+)/.exec(started.output())?.[1] ?? '';
  return { ...started, origin };
}
