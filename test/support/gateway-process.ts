/** Starts the gateway as a process, and waits for its output. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { type Started, start } from './process.ts';
import { patiently } from './store-budget.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { reportWhileWaiting } from './until.ts';

const POLL_MS = 50;

export async function environment(more: Record<string, string> = {}): Promise<Record<string, string>> {
  return patiently({
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(await freePort()),
    GATEWAY_ADMIN_PORT: String(await freePort()),
    ...more,
  });
}

export async function launch(t: Owner, env: Record<string, string>): Promise<Started> {
  const gateway = start(['gateway/main.ts'], env);
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  return gateway;
}

export interface GatewayProcess extends Started {
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly origin: string;
  /** Origin of the admin listener. */
  readonly admin: string;
  /** Whether `/readyz` answers with 200. */
  isReady(): Promise<boolean>;
}

/** Starts a gateway, by default in front of nothing. @param policies text of its policy file; default: the project's own */
export async function startGatewayProcess(
  t: Owner,
  more: Record<string, string> = {},
  policies?: string,
): Promise<GatewayProcess> {
  const file = policies === undefined ? {} : { GATEWAY_POLICIES: join(temporaryFolder(t), 'policies.yaml') };
  if (file.GATEWAY_POLICIES !== undefined) writeFileSync(file.GATEWAY_POLICIES, policies ?? '');
  const env = await environment({ ...file, ...more });
  const started = await launch(t, env);
  const admin = `http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}`;
  return {
    ...{ ...started, env, admin, port: Number(env.GATEWAY_PORT) },
    origin: `http://127.0.0.1:${env.GATEWAY_PORT}`,
    isReady: async () => (await fetch(`${admin}/readyz`)).ok,
  };
}

export function childrenOf(pid = 0): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
}

export function lives(pid: number): boolean {
  try {
    // A process that has ended stays in the list until its parent has collected its status.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/**
 * Calls repeatedly until the result is as expected.
 *
 * @throws the error of `ask`, for instance because the process ended
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T>,
  holds: (value: T) => boolean,
): Promise<T> {
  let last: T | undefined;
  const stopReports = reportWhileWaiting(() => `${what}; last: ${JSON.stringify(last)}`);
  try {
    for (;;) {
      const value = await ask();
      if (holds(value)) return value;
      last = value;
      await delay(POLL_MS);
    }
  } finally {
    stopReports();
  }
}
