/**
 * What the environment route answers, kept per workspace for five minutes.
 *
 * Kept is the promise, not its result: callers that arrive while a state is being built wait for the same one, and a
 * purge during the build also throws away what is being built. Failures are not kept. The cache is bounded in entries and
 * in bytes; when it is full, the entry that was made first goes.
 */
import { createHash } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';

const LIFETIME_MS: Millis = 5 * 60 * 1000;
const ENTRIES_MAX = 1_000;
const BYTES_MAX = 67_108_864;

export interface State {
  /** JSON in UTF-8. */
  readonly body: Buffer;
  /** In quotes, strong (RFC 9110 8.8.3). */
  readonly etag: string;
}

interface Entry {
  readonly state: Promise<State>;
  readonly expiresAt: Millis;
  /** 0 until it is built. A state that is found under two ids is held once and counted twice. */
  bytes: number;
}

export interface StateCache {
  /** @param scopeId as the client wrote it: a workspace id or a legacy environment id */
  get(scopeId: string, build: () => Promise<State>): Promise<State>;
  /** After every write to a workspace's surveys, action classes, languages or settings. Takes both of its ids. */
  purge(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
}

export interface StateCacheOptions {
  readonly clock: Clock;
  readonly entriesMax?: number;
  readonly bytesMax?: number;
}

/** @param json what the route sends */
export function toCachedState(json: string): State {
  const body = Buffer.from(json);
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"` };
}

export function createStateCache({
  clock,
  entriesMax = ENTRIES_MAX,
  bytesMax = BYTES_MAX,
}: StateCacheOptions): StateCache {
  const entries = new Map<string, Entry>();
  let bytes = 0;

  const remove = (scopeId: string | undefined): void => {
    const entry = scopeId === undefined ? undefined : entries.get(scopeId);
    if (scopeId === undefined || entry === undefined) return;
    entries.delete(scopeId);
    bytes -= entry.bytes;
  };
  const removeOldest = (): void => remove(entries.keys().next().value);
  const count = (scopeId: string, entry: Entry, state: State): void => {
    if (entries.get(scopeId) !== entry) return;
    entry.bytes = state.body.length;
    bytes += entry.bytes;
    while (bytes > bytesMax) removeOldest();
  };

  return {
    get(scopeId, build) {
      const known = entries.get(scopeId);
      if (known !== undefined && clock() < known.expiresAt) return known.state;
      remove(scopeId);
      if (entries.size >= entriesMax) removeOldest();
      const entry: Entry = { state: build(), expiresAt: clock() + LIFETIME_MS, bytes: 0 };
      entries.set(scopeId, entry);
      entry.state.then(
        (state) => count(scopeId, entry, state),
        () => {
          if (entries.get(scopeId) === entry) remove(scopeId);
        },
      );
      return entry.state;
    },
    purge({ workspaceId, environmentId }) {
      remove(workspaceId);
      remove(environmentId);
    },
  };
}
