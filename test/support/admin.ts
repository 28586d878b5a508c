/** The admin listener of a gateway that runs in this process. */
import { pino } from 'pino';
import { buildAdmin } from '#gateway/admin.ts';
import { families } from '#gateway/exposition.ts';
import type { Clock } from '#shared/clock.ts';
import type { Owner, TestGateway } from './gateway.ts';

export interface TestAdminOptions {
  readonly clock?: Clock;
  readonly token?: string | null;
}

/** @returns its origin */
export async function startTestAdmin(
  owner: Owner,
  { gateway }: Pick<TestGateway, 'gateway'>,
  { clock = Date.now, token = null }: TestAdminOptions = {},
): Promise<string> {
  const listFamilies = async (): Promise<[ReturnType<typeof families>]> => [families(gateway.samples())];
  const admin = buildAdmin({
    ready: () => gateway.ready(),
    storeAvailable: async () => gateway.storeAvailable(),
    families: listFamilies,
    token,
    api: {
      token,
      isLoopback: true,
      log: pino({ level: 'silent' }),
      clock,
      trust: { kind: 'none' },
      policies: () => gateway.policySet(),
      control: gateway.control,
      findDecision: (id) => gateway.findDecision(id),
      top: {
        kind: 'memory',
        processes: async () => [
          {
            storeAvailable: gateway.storeAvailable(),
            replicas: gateway.replicas(),
            limited: gateway.limited(),
          },
        ],
        families: listFamilies,
      },
    },
  });
  owner.teardown(() => admin.close());
  return admin.listen({ host: '127.0.0.1', port: 0 });
}
