/**
 * The seam between the limiter and its store, whatever kind of Redis that is.
 *
 * A call is sent at most once to a server that may carry it out. Nothing waits for a connection and nothing is sent
 * again when one breaks: the call rejects, and `outage.ts` decides what then happens to the request. Only an answer that
 * says that nothing was done (NOSCRIPT, and MOVED and ASK in a Cluster) is followed by another attempt.
 */
import { createHash } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';
import type { StoreFault } from './fault.ts';

export interface ConnectionOptions {
  /** A server that is asked and says nothing for so long is taken for dead. */
  readonly silenceMs: Millis;
  /** After `connect`, whenever `ready` has changed. */
  readonly onChange: (ready: boolean) => void;
}

export interface StoreScript {
  readonly lua: string;
  /** By which the server knows the script once it has seen it. */
  readonly sha1: string;
}

export function storeScript(lua: string): StoreScript {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') };
}

export interface StoreConnection {
  /** Whether calls can be made. A Cluster is ready while one of its primaries is. */
  readonly ready: boolean;
  /** What the last attempt to connect failed with. */
  whyDown(): StoreFault;
  /** null where all keys may go into one call; in a Cluster, all keys of one call must have the same slot. */
  slotOf(key: string): number | null;
  /**
   * Rejects at once when there is no connection, and at the latest when the server has been silent for
   * `silenceMs`. The caller keeps its own budget.
   *
   * @param keys at least one
   * @throws StoreFault
   */
  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /**
   * Begins to connect, and goes on until `close`, whatever becomes of the first attempt. Called once.
   *
   * @throws StoreFault when the first attempt failed
   */
  connect(): Promise<void>;
  /** What is in flight may be answered or rejected. */
  close(): void;
}
