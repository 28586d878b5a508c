/** Everything a route may use: built once, from config, and replaceable part by part in tests. */
import type { Kysely } from 'kysely';
import type { Signer } from '#api/auth/signer.ts';
import type { Config } from '#api/config.ts';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/ids.ts';
import type { StateCache } from '#api/resources/environment/cache.ts';
import type { Clock } from '#gateway/clock.ts';

export interface Context {
  readonly config: Config;
  readonly db: Kysely<Database>;
  readonly clock: Clock;
  readonly random: Random;
  readonly signer: Signer;
  /** What the environment route answers, per workspace. Whoever changes what is in there purges it. */
  readonly states: StateCache;
}
