/** The admin listener of a gateway that runs in this process. */
import { randomBytes } from 'node:crypto';
import { type Logger, pino } from 'pino';
import { buildAdmin } from '#gateway/operate/admin/admin.ts';
import type { AdminGateway } from '#gateway/operate/admin/context.ts';
import { openFilesMax } from '#gateway/operate/doctor/open-files.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { VERSION } from '#shared/version.ts';
import type { Owner, TestGateway } from './gateway.ts';

export interface TestAdminOptions {
  readonly clock?: Clock;
  /** undefined for any free port. */
  readonly port?: number;
  readonly token?: string | null;
  readonly isLoopback?: boolean;
  readonly trust?: ProxyTrust;
  /** Replaces parts of the gateway's report on itself. */
  readonly doctor?: Partial<AdminGateway['doctor']>;
  readonly log?: Logger;
}

export function buildTestAdmin(
  { gateway, config, settings }: Pick<TestGateway, 'gateway' | 'config' | 'settings'>,
  {
    clock = Date.now,
    token = null,
    isLoopback = true,
    trust = config.trust,
    doctor = {},
    log = pino({ level: 'silent' }),
  }: TestAdminOptions = {},
): ReturnType<typeof buildAdmin> {
  return buildAdmin({
    ...gateway,
    storeKind: 'memory',
    token,
    isLoopback,
    log,
    clock,
    trust,
    newSecret: () => randomBytes(32).toString('base64url'),
    doctor: {
      config,
      certificate: settings.gathered.certificate,
      readPolicyFile,
      openFilesMax,
      version: VERSION,
      // The doctor has no objection to this one, whichever version runs the tests.
      nodeVersion: '26.13.1',
      publicPort: () => gateway.port,
      ...doctor,
    },
  });
}

/** @returns the origin of the listener */
export async function startTestAdmin(
  owner: Owner,
  gateway: Pick<TestGateway, 'gateway' | 'config' | 'settings'>,
  options: TestAdminOptions = {},
): Promise<string> {
  const admin = buildTestAdmin(gateway, options);
  owner.teardown(() => admin.close());
  return admin.listen({ host: '127.0.0.1', port: options.port ?? 0 });
}
