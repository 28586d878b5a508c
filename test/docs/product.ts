/** Starts the product as a page describes, on free ports. */
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { type Started, startProgram } from '#test/support/process.ts';
import { patiently } from '#test/support/store-budget.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/**
 * @param command from the page, such as `npm start`
 * @param env of this run, in addition to ports and a database
 */
export async function startProduct(
  owner: Owner,
  command: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Started & { readonly origin: string }> {
  const folder = temporaryFolder(owner);
  const [port, adminPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const origin = `http://localhost:${port}`;
  // A separate process group, so that npm, its shell and the program stop together, as with Ctrl-C.
  const product = startProgram(['setsid', 'bash', '-c', command], {
    HOME: folder,
    GATEWAY_POLICIES: '',
    GATEWAY_PORT: String(port),
    GATEWAY_ADMIN_PORT: String(adminPort),
    GATEWAY_DRAIN_TIMEOUT_MS: '1000',
    API_PORT: String(apiPort),
    PUBLIC_URL: origin,
    DATABASE_URL: `file:${join(folder, 'floodgate.sqlite')}`,
    STORAGE_PATH: join(folder, 'uploads'),
    ...patiently(env),
  });
  owner.teardown(async () => {
    const { pid, exitCode, signalCode } = product.child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGINT');
    await product.ended();
  });
  await product.until(/Gateway ready/);
  return { ...product, origin };
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
