/** Opens connections to a store, and generates load that records the outcome of every call. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreAccess } from '#gateway/store/access.ts';
import { parseStoreAddress } from '#gateway/store/address.ts';
import { type ConnectionOptions, type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Owner } from './gateway.ts';
import { until } from './until.ts';

/** KEYS: a hash. ARGV: a field. Returns how often the script has run for the field. */
export const COUNT = storeScript(`return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)`);

export function accessTo(url: string): StoreAccess {
  return { address: parseStoreAddress(url), tls: null };
}

/** Returns a connection that is not open yet, and is closed with the test. */
export function storeAt(
  owner: Owner,
  url: string,
  { silenceMs = 2000, onChange = () => {}, ...access }: Partial<ConnectionOptions & StoreAccess> = {},
): StoreConnection {
  const connection = openStore({ ...accessTo(url), ...access }, { silenceMs, onChange });
  owner.teardown(() => connection.close());
  return connection;
}

/** Returns the error that a call was rejected with. */
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
  /** Fields that were not answered, with their errors. */
  readonly rejected: ReadonlyMap<string, Error>;
  /** Replies other than 1: the call had run before. */
  readonly wrong: readonly unknown[];
  /** Resolves once this many more calls have been answered. */
  untilMore(count: number): Promise<void>;
  /** Resolves once every call is settled. */
  stop(): Promise<void>;
}

/** Starts callers that call again once they know the result of the last call. Each call has its own field. */
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
