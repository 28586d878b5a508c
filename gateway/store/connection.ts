/**
 * The interface between the limiter and any kind of Redis.
 *
 * A call is executed at most once. Calls neither wait for a connection nor are sent again when it breaks: they reject,
 * and `outage.ts` decides about the request. Only a reply that proves that nothing was executed (NOSCRIPT; MOVED and
 * ASK in a Cluster) leads to another attempt.
 */
import { createHash } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';
import type { StoreFault } from './fault.ts';

export interface ConnectionOptions {
  /**
   * A server that owes an answer and sends nothing for this time counts as dead: the connection is closed, and all calls
   * reject. Only time in which this process ran is counted.
   */
  readonly silenceMs: Millis;
  /** Called after `connect` whenever `ready` changes. */
  readonly onChange: (ready: boolean) => void;
}

export interface StoreScript {
  readonly lua: string;
  readonly sha1: string;
}

export function storeScript(lua: string): StoreScript {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

/** Redis runs one script at a time. Calls with more keys are split, so that no script runs for long. */
export const KEYS_PER_SCRIPT_MAX = 200;

/**
 * @param keyOf one key of the item; all of its keys share a slot
 * @param keysOf the number of its keys
 * @returns the items of each call, whose keys share a slot and are bounded in number
 */
export function inCalls<T>(
  store: Pick<StoreConnection, 'slotOf'>,
  items: Iterable<T>,
  keyOf: (item: T) => string,
  keysOf: (item: T) => number = () => 1,
): T[][] {
  const calls: T[][] = [];
  for (const same of Map.groupBy(items, (item) => store.slotOf(keyOf(item))).values()) {
    let left = 0;
    for (const item of same) {
      const keys = keysOf(item);
      if (keys <= left) calls.at(-1)?.push(item);
      else {
        calls.push([item]);
        left = KEYS_PER_SCRIPT_MAX;
      }
      left -= keys;
    }
  }
  return calls;
}

export interface StoreConnection {
  /** Whether calls can be made. A Cluster is ready if at least one primary is ready. */
  readonly ready: boolean;
  whyDown(): StoreFault;
  /** Slot of the key in a Cluster, where all keys of a call must share one slot; null if calls may mix all keys. */
  slotOf(key: string): number | null;
  /**
   * Rejects at once without a connection, and otherwise after `silenceMs` without an answer. Callers that need an
   * answer sooner have their own timeout.
   *
   * @param keys at least one
   * @throws StoreFault
   */
  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /**
   * Connects, and reconnects until `close`. Call it once.
   *
   * @throws StoreFault if the first attempt fails; further attempts follow
   */
  connect(): Promise<void>;
  close(): void;
}
