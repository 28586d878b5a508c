/** Starts the product: the gateway's process in front of the API's, each on a free port, with a fresh database. */
import { join } from 'node:path';
import { startApiProcess } from './api-process.ts';
import { sharedDatabase } from './database.ts';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { type Started, start } from './process.ts';
import { patiently } from './store-budget.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface Stack {
  /** Origin of the gateway, which clients call. */
  readonly origin: string;
  readonly api: Started;
  readonly gateway: Started;
  readonly workspaceId: string;
  /** A key with every right in that workspace. */
  readonly apiKey: string;
  /**
   * Calls the API through the gateway, with the key.
   *
   * @returns the `data` of the reply; throws if it is not a success
   */
  manage(method: string, path: string, body?: unknown): Promise<unknown>;
}

interface StackOptions {
  /** Further environment variables of the API, such as { RATE_LIMITING_DISABLED: '1' }. */
  readonly apiEnv?: Readonly<Record<string, string>>;
  /** Further environment variables of the gateway. */
  readonly gatewayEnv?: Readonly<Record<string, string>>;
}

const workspaceId = 'cworkspaceofthestack00000';
const apiKey = 'fbk_of_the_stack';

/** Both processes end with the test that owns them, the gateway first. */
export async function startStack(owner: Owner, options: StackOptions = {}): Promise<Stack> {
  const folder = temporaryFolder(owner);
  const [gatewayPort, adminPort] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${gatewayPort}`;

  const api = await startApiProcess(owner, {
    DATABASE_URL: await sharedDatabase(owner),
    STORAGE_PATH: join(folder, 'uploads'),
    PUBLIC_URL: origin,
    BOOTSTRAP_WORKSPACE_ID: workspaceId,
    BOOTSTRAP_API_KEY: apiKey,
    BOOTSTRAP_PASSWORD: 'Password1',
    ...options.apiEnv,
  });

  const gateway = start(['gateway/main.ts'], {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(gatewayPort),
    GATEWAY_ADMIN_PORT: String(adminPort),
    GATEWAY_UPSTREAM: api.origin,
    GATEWAY_DRAIN_TIMEOUT_MS: '1000',
    ...patiently(options.gatewayEnv ?? {}),
  });
  owner.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);

  return {
    origin,
    api,
    gateway,
    workspaceId,
    apiKey,
    async manage(method, path, body) {
      const reply = await fetch(origin + path, {
        method,
        headers: { 'x-api-key': apiKey },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      if (!reply.ok) throw new Error(`${method} ${path} was answered with ${reply.status}: ${text}`);
      const parsed: unknown = JSON.parse(text);
      return typeof parsed === 'object' && parsed !== null && 'data' in parsed ? parsed.data : parsed;
    },
  };
}
