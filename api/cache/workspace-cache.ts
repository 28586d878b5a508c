/**
 * A cache of values that are built from the rows of a workspace, for up to a minute.
 *
 * The cache keeps the promise, not its result: callers that arrive during a build wait for the same one, and a purge
 * during the build also drops the value that is being built. So no value that was read before a purge is used after
 * it. Failures are not kept. The cache is bounded in entries and in bytes. When it is full, it drops the oldest
 * entry. An entry of more than a tenth of the cache is dropped as soon as it is built, so that one workspace does not
 * drop those of all others.
 *
 * Other processes have caches of their own, and see a change when their value is a minute old.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const LIFETIME_MS: Millis = 60_000;
const ENTRIES_MAX = 1_000;
const BYTES_MAX = 83_886_080;

export interface Kept {
  /** The size that counts against the bound of the cache. */
  readonly bytes: number;
  /** Time after which the value is built again. */
  readonly validUntil: Millis;
}

export interface WorkspaceCache<T extends Kept> {
  get(workspaceId: string, build: () => Promise<T>): Promise<T>;
  /** Call it after every write to a workspace's surveys, segments, action classes, languages or settings. */
  purge(workspaceId: string): void;
  /** Creates another cache with the same clock, which is purged together with this one. */
  beside<U extends Kept>(bounds?: CacheBounds): WorkspaceCache<U>;
}

interface CacheBounds {
  readonly entriesMax?: number;
  readonly bytesMax?: number;
}

interface WorkspaceCacheOptions extends CacheBounds {
  readonly clock: Clock;
}

interface Entry<T> {
  readonly value: Promise<T>;
  readonly madeAt: Millis;
  validUntil: Millis;
  /** 0 until it is built. */
  bytes: number;
}

export function createWorkspaceCache<T extends Kept>({
  clock,
  entriesMax = ENTRIES_MAX,
  bytesMax = BYTES_MAX,
}: WorkspaceCacheOptions): WorkspaceCache<T> {
  const entries = new Map<string, Entry<T>>();
  const others: Pick<WorkspaceCache<Kept>, 'purge'>[] = [];
  let bytes = 0;

  const remove = (workspaceId: string | undefined): void => {
    const entry = workspaceId === undefined ? undefined : entries.get(workspaceId);
    if (workspaceId === undefined || entry === undefined) return;
    entries.delete(workspaceId);
    bytes -= entry.bytes;
  };
  const removeOldest = (): void => remove(entries.keys().next().value);
  const count = (workspaceId: string, entry: Entry<T>, value: T): void => {
    if (entries.get(workspaceId) !== entry) return;
    if (value.bytes > bytesMax / 10) {
      remove(workspaceId);
      return;
    }
    entry.validUntil = Math.min(entry.validUntil, value.validUntil);
    entry.bytes = value.bytes;
    bytes += entry.bytes;
    while (bytes > bytesMax) removeOldest();
  };

  const isGood = ({ madeAt, validUntil }: Entry<T>): boolean => {
    const now = clock();
    // Before it was made: the clock was set back.
    return now >= madeAt && now < validUntil;
  };

  return {
    get(workspaceId, build) {
      const known = entries.get(workspaceId);
      if (known !== undefined && isGood(known)) return known.value;
      remove(workspaceId);
      if (entries.size >= entriesMax) removeOldest();
      const madeAt = clock();
      const entry: Entry<T> = { value: build(), madeAt, validUntil: madeAt + LIFETIME_MS, bytes: 0 };
      entries.set(workspaceId, entry);
      entry.value.then(
        (value) => count(workspaceId, entry, value),
        () => {
          if (entries.get(workspaceId) === entry) remove(workspaceId);
        },
      );
      return entry.value;
    },
    purge(workspaceId) {
      remove(workspaceId);
      for (const other of others) other.purge(workspaceId);
    },
    beside<U extends Kept>(bounds: CacheBounds = {}) {
      const other = createWorkspaceCache<U>({ clock, ...bounds });
      others.push(other);
      return other;
    },
  };
}
