/** Starts the API as a process. */
import { join } from 'node:path';
import type { Owner } from './gateway.ts';
import { type Started, start } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface ApiProcess extends Started {
  readonly origin: string;
}

/** Starts the API on any free port, and resolves when it is ready. It ends with the test. */
export async function startApiProcess(
  owner: Owner,
  env: Readonly<Record<string, string>> = {},
): Promise<ApiProcess> {
  const api = start(['api/main.ts'], { API_PORT: '0', ...env });
  owner.teardown(() => api.stop('SIGKILL'));
  const [, origin = ''] = await api.until(/API ready on (\S+)/);
  return { ...api, origin };
}

/** Starts two on one database and one folder of files, as behind a load balancer. The key is that of the workspace `ws1`. */
export async function startPair(
  owner: Owner,
  databaseUrl: string,
  key: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{
  readonly processes: readonly [ApiProcess, ApiProcess];
  readonly bases: readonly [string, string];
}> {
  const all = {
    DATABASE_URL: databaseUrl,
    STORAGE_PATH: join(temporaryFolder(owner), 'uploads'),
    BOOTSTRAP_WORKSPACE_ID: 'ws1',
    BOOTSTRAP_API_KEY: key,
    BOOTSTRAP_PASSWORD: 'Password1',
    LOG_LEVEL: 'error',
    ...env,
  };
  const processes = await Promise.all([startApiProcess(owner, all), startApiProcess(owner, all)]);
  return { processes, bases: [processes[0].origin, processes[1].origin] };
}
