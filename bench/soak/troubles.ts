/**
 * Disturbs Redis and the policies during the soak, in a cycle of four minutes. Redis is frozen, is killed and
 * restarted, or loses its connections while the policies are edited. In the fourth minute, only the policies are
 * edited.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { policiesOf } from '#bench/peers/floodgate.ts';
import type { Processes } from '#bench/run/processes.ts';
import { ROOT } from '#bench/run/programs.ts';
import type { RedisServer } from '#test/support/redis.ts';

const FIRST_MS = 12_000;
const FROZEN_MS = 3000;
const DOWN_MS = 2000;
const BETWEEN_CUTS_MS = 8000;

/** Returns the shipped policies and another one that no request matches. So an edit must not change any counter. */
export function policies(edition: number): string {
  const route = `GET /never/${edition}`;
  const one = { name: `soak-${edition}`, route, identifier: 'ip', limit: 1, window: '1m' };
  return policiesOf(ROOT, (file) => file.policies.push(one));
}

/** Causes the disturbance of a minute. @returns its description */
export async function disturb(
  processes: Processes,
  redis: RedisServer,
  policyFile: string,
  minute: number,
): Promise<string> {
  const edit = () => {
    renameSync(processes.file('policies.new', policies(minute)), join(processes.folder, policyFile));
  };
  const cut = () => redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await sleep(FIRST_MS);
  switch (minute % 4) {
    case 1:
      redis.freeze();
      await sleep(FROZEN_MS);
      redis.thaw();
      return 'Redis was frozen for 3 s';
    case 2:
      await redis.kill();
      await sleep(DOWN_MS);
      await redis.restart();
      return 'Redis was killed and restarted';
    case 3:
      await cut();
      await sleep(BETWEEN_CUTS_MS);
      edit();
      await cut();
      return 'connections to Redis were cut twice, policies edited';
    default:
      edit();
      return 'policies edited';
  }
}
