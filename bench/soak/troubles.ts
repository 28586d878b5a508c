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

/** @returns a function that causes the next disturbance, and returns its description */
export function startTroubles(
  processes: Processes,
  redis: RedisServer,
  policyFile: string,
): () => Promise<string> {
  let turn = 0;
  let edition = 0;
  const edit = (): void => {
    const made = processes.file('policies.new', policies(++edition));
    renameSync(made, join(processes.folder, policyFile));
  };
  const cut = () => redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const cutTwice = async (): Promise<void> => {
    await cut();
    await sleep(BETWEEN_CUTS_MS);
    edit();
    await cut();
  };
  const freeze = async (): Promise<void> => {
    redis.freeze();
    await sleep(FROZEN_MS);
    redis.thaw();
  };
  const restart = async (): Promise<void> => {
    await redis.kill();
    await sleep(DOWN_MS);
    await redis.restart();
  };
  const troubles: readonly (readonly [what: string, bring: () => unknown])[] = [
    ['Redis was frozen for 3 s', freeze],
    ['Redis was killed and restarted', restart],
    ['connections to Redis were cut twice, policies edited', cutTwice],
    ['policies edited', edit],
  ];
  return async () => {
    const [what, bring] = troubles[turn++ % troubles.length] ?? ['', edit];
    await sleep(FIRST_MS);
    await bring();
    return what;
  };
}
