/** The admin listener of a gateway that runs in this process. */
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { type Logger, pino } from 'pino';
import { readPolicyFile } from '#gateway/config.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { buildAdmin } from '#gateway/operate/admin/admin.ts';
import type { ReplayBounds } from '#gateway/operate/admin/replay-upload.ts';
import { openFilesMax } from '#gateway/operate/doctor/open-files.ts';
import type { DoctorSources } from '#gateway/operate/doctor/report.ts';
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
  readonly doctor?: Partial<DoctorSources>;
  readonly temporaryFolder?: string;
  readonly replayBounds?: ReplayBounds;
  readonly log?: Logger;
}

/** @returns the origin of the listener */
export async function startTestAdmin(
  owner: Owner,
  { gateway, config }: Pick<TestGateway, 'gateway' | 'config'>,
  {
    clock = Date.now,
    port = 0,
    token = null,
    isLoopback = true,
    trust = config.trust,
    doctor = {},
    temporaryFolder = tmpdir(),
    replayBounds,
    log = pino({ level: 'silent' }),
  }: TestAdminOptions = {},
): Promise<string> {
  const listFamilies = async (): Promise<[ReturnType<typeof families>]> => [families(gateway.samples())];
  const admin = buildAdmin({
    ready: () => gateway.ready(),
    storeAvailable: async () => gateway.storeAvailable(),
    families: listFamilies,
    token,
    api: {
      token,
      isLoopback,
      log,
      clock,
      trust,
      policies: () => gateway.policySet(),
      policyText: () => gateway.policyText(),
      referencedTexts: () => gateway.referencedTexts(),
      temporaryFolder,
      stopping: AbortSignal.any([]),
      ...(replayBounds === undefined ? {} : { replayBounds }),
      policyRefusal: () => gateway.policyRefusal(),
      newSecret: () => randomBytes(32).toString('base64url'),
      control: gateway.control,
      doctor: {
        config,
        readPolicyFile,
        openFilesMax,
        version: VERSION,
        nodeVersion: process.versions.node,
        publicPort: () => gateway.port,
        ...doctor,
      },
      addresses: gateway.addresses,
      showAddresses: async (forMs) => gateway.addresses.show(forMs),
      findDecision: (id) => gateway.findDecision(id),
      listDecisions: (before, count) => gateway.listDecisions(before, count),
      top: {
        kind: 'memory',
        processes: async () => [
          {
            storeAvailable: gateway.storeAvailable(),
            storeAwaySince: gateway.storeAwaySince(),
            replicas: gateway.replicas(),
            limited: gateway.limited(),
            paths: gateway.paths(),
          },
        ],
        takeSeconds: async () => gateway.takeSeconds(),
        exchangeDenied: (own) => gateway.exchangeDenied(own),
        families: listFamilies,
      },
    },
  });
  owner.teardown(() => admin.close());
  return admin.listen({ host: '127.0.0.1', port });
}
