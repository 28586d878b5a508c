/**
 * A cache of the states that SDKs ask for, each for up to a minute.
 *
 * The cache keeps the promise, not its result: callers that arrive during a build wait for the same one, and a purge
 * during the build also drops the state that is being built. So no state that was read before a purge is used after
 * it. Failures are not kept. The cache is bounded in bytes. When it is full, it drops the oldest entries.
 *
 * Other processes have caches of their own, and see a change when their state is a minute old.
 */
import { createHash } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';

const LIFETIME_MS: Millis = 60_000;
const BYTES_MAX = 83_886_080;
/** An entry takes about this many bytes besides its body. */
const ENTRY_BYTES = 1_024;

export interface State {
  /** JSON in UTF-8. */
  readonly body: Buffer;
  /** Strong validator with quotes (RFC 9110 8.8.3). */
  readonly etag: string;
}

export interface StateCache {
  get(workspaceId: string, build: () => Promise<State>): Promise<State>;
  /** Call it after every write to a workspace's surveys, segments, action classes, languages or settings. */
  purge(workspaceId: string): void;
}

/** @param json the body that the route sends */
export function toCachedState(json: string): State {
  const body = Buffer.from(json);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return { body, etag };
}

interface Entry {
  readonly state: Promise<State>;
  readonly madeAt: Millis;
  /** 0 until it is built. */
  bytes: number;
}

export function createStateCache(clock: Clock, bytesMax = BYTES_MAX): StateCache {
  const entries = new Map<string, Entry>();
  let bytes = 0;

  const remove = (workspaceId: string): void => {
    bytes -= entries.get(workspaceId)?.bytes ?? 0;
    entries.delete(workspaceId);
  };
  const count = (entry: Entry, { body }: State): void => {
    entry.bytes = ENTRY_BYTES + body.length;
    bytes += entry.bytes;
    for (const oldest of entries.keys()) {
      if (bytes <= bytesMax) return;
      remove(oldest);
    }
  };

  return {
    get(workspaceId, build) {
      const now = clock();
      const known = entries.get(workspaceId);
      // Before it was made: the clock was set back.
      if (known !== undefined && now >= known.madeAt && now < known.madeAt + LIFETIME_MS) return known.state;
      remove(workspaceId);
      const entry: Entry = { state: build(), madeAt: now, bytes: 0 };
      entries.set(workspaceId, entry);
      const isKept = () => entries.get(workspaceId) === entry;
      entry.state.then(
        (state) => isKept() && count(entry, state),
        () => isKept() && remove(workspaceId),
      );
      return entry.state;
    },
    purge: remove,
  };
}
