/** Connections to a store, and load that knows of every call what became of it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreAccess } from '#gateway/store/access.ts';
import { parseStoreAddress } from '#gateway/store/address.ts';
import { type ConnectionOptions, type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Owner } from './gateway.ts';
import { until } from './until.ts';

/** KEYS a hash; ARGV a field. Replies how often it has been executed for the field. */
export const COUNT = storeScript(`return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)`);

export function accessTo(url: string): StoreAccess {
  return { address: parseStoreAddress(url), tls: null };
}

/** Not connected yet; closed with the test. */
export function storeAt(
  owner: Owner,
  url: string,
  { silenceMs = 2000, onChange = () => {}, ...access }: Partial<ConnectionOptions & StoreAccess> = {},
): StoreConnection {
  const connection = openStore({ ...accessTo(url), ...access }, { silenceMs, onChange });
  owner.teardown(() => connection.close());
  return connection;
}

/** What a call was rejected with. */
export async function fault(call: Promise<unknown>): Promise<StoreFault> {
  const error = await call.then(
    () => new Error('the call was answered'),
    (error: unknown) => error,
  );
  if (error instanceof StoreFault) return error;
  throw error;
}

export interface Load {
  /** Fields that were answered, in order. */
  readonly acknowledged: readonly string[];
  /** Those that were not, and why. */
  readonly rejected: ReadonlyMap<string, Error>;
  /** Answers other than 1: the call was executed before. */
  readonly wrong: readonly unknown[];
  /** Resolves once so many more have been answered. */
  untilMore(count: number): Promise<void>;
  /** Resolves once all that was sent is settled. */
  stop(): Promise<void>;
}

/** Callers that call again once they know what became of the last call; each call has a field of its own. */
export function load(connection: StoreConnection, key: string, callers = 20): Load {
  const acknowledged: string[] = [];
  const rejected = new Map<string, Error>();
  const wrong: unknown[] = [];
  let calls = 0;
  let stopped = false;
  const caller = async (): Promise<void> => {
    while (!stopped) {
      const field = String(++calls);
      try {
        const answer = await connection.run(COUNT, [key], [field]);
        acknowledged.push(field);
        if (answer !== 1) wrong.push(answer);
        await delay(1);
      } catch (error) {
        rejected.set(field, error as Error);
        await delay(5);
      }
    }
  };
  const all = Promise.all(Array.from({ length: callers }, caller));
  return {
    acknowledged,
    rejected,
    wrong,
    untilMore(count) {
      const goal = acknowledged.length + count;
      return until(() => acknowledged.length >= goal);
    },
    async stop() {
      stopped = true;
      await all;
    },
  };
}
