/**
 * What the environment route answers, kept per workspace for five minutes.
 *
 * Kept is the promise, not its result: callers that arrive while a state is being built wait for the same one, and a
 * purge during the build also throws away what is being built. So nothing that was read before a purge is kept after it.
 * Failures are not kept. The cache is bounded in entries and in bytes; when it is full, the entry that was made first
 * goes.
 *
 * Other processes keep states of their own. All build the same bytes within a window of five minutes, so the ETag of one
 * is good for all; each workspace has windows of its own, so that not all states are built at once. What others change
 * is told by the news (processes/news.ts).
 */
import { createHash } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';

const WINDOW_MS: Millis = 5 * 60 * 1000;
/** While changes of other processes are not heard of: HTTP caches may add two minutes. */
const UNHEARD_MS: Millis = 3 * 60 * 1000;
const ENTRIES_MAX = 1_000;
const BYTES_MAX = 67_108_864;

export interface State {
  /** JSON in UTF-8. */
  readonly body: Buffer;
  /** In quotes, strong (RFC 9110 8.8.3). */
  readonly etag: string;
  /** From then on it is built anew. */
  readonly validUntil: Millis;
}

interface Entry {
  readonly state: Promise<State>;
  readonly madeAt: Millis;
  /** At the end of its window, once it is built. */
  validUntil: Millis;
  /** 0 until it is built. A state that is found under two ids is held once and counted twice. */
  bytes: number;
}

export interface StateCache {
  /** @param scopeId as the client wrote it: a workspace id or a legacy environment id */
  get(scopeId: string, build: () => Promise<State>): Promise<State>;
  /** After every write to a workspace's surveys, action classes, languages or settings. Takes both of its ids. */
  purge(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
  /** Anything may have changed. */
  purgeAll(): void;
  /** Who else keeps something of workspaces hears of it at the same moment. */
  alsoPurge(other: Purged): void;
}

export type Purged = Pick<StateCache, 'purge' | 'purgeAll'>;

export interface StateCacheOptions {
  readonly clock: Clock;
  /** Do we hear of what other processes change? Unset: there are none. */
  readonly isHeard?: () => boolean;
  readonly entriesMax?: number;
  readonly bytesMax?: number;
}

/** @param json what the route sends */
export function toCachedState(json: string, validUntil: Millis): State {
  const body = Buffer.from(json);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return { body, etag, validUntil };
}

/** The five minutes around `now` in which all processes build the same state of this workspace. */
export function windowOf(
  workspaceId: string,
  now: Millis,
): { readonly beginsAt: Millis; readonly endsAt: Millis } {
  const offset = createHash('sha256').update(workspaceId).digest().readUInt32BE() % WINDOW_MS;
  const beginsAt = Math.floor((now - offset) / WINDOW_MS) * WINDOW_MS + offset;
  return { beginsAt, endsAt: beginsAt + WINDOW_MS };
}

export function createStateCache({
  clock,
  isHeard = () => true,
  entriesMax = ENTRIES_MAX,
  bytesMax = BYTES_MAX,
}: StateCacheOptions): StateCache {
  const entries = new Map<string, Entry>();
  const others: Purged[] = [];
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
    entry.validUntil = Math.min(entry.validUntil, state.validUntil);
    entry.bytes = state.body.length;
    bytes += entry.bytes;
    while (bytes > bytesMax) removeOldest();
  };

  const isGood = ({ madeAt, validUntil }: Entry): boolean => {
    const now = clock();
    return now < validUntil && (isHeard() || now < madeAt + UNHEARD_MS);
  };

  return {
    get(scopeId, build) {
      const known = entries.get(scopeId);
      if (known !== undefined && isGood(known)) return known.state;
      remove(scopeId);
      if (entries.size >= entriesMax) removeOldest();
      const madeAt = clock();
      const entry: Entry = { state: build(), madeAt, validUntil: madeAt + WINDOW_MS, bytes: 0 };
      entries.set(scopeId, entry);
      entry.state.then(
        (state) => count(scopeId, entry, state),
        () => {
          if (entries.get(scopeId) === entry) remove(scopeId);
        },
      );
      return entry.state;
    },
    purge(workspace) {
      remove(workspace.workspaceId);
      remove(workspace.environmentId);
      for (const other of others) other.purge(workspace);
    },
    purgeAll() {
      entries.clear();
      bytes = 0;
      for (const other of others) other.purgeAll();
    },
    alsoPurge: (other) => void others.push(other),
  };
}
