/**
 * What the environment route answers, kept per workspace as text for five minutes.
 *
 * Kept is the promise, not its result: callers that arrive while a state is being built wait for the same one, and a
 * purge during the build also throws away what is being built. Failures are not kept. The cache is bounded; when it is
 * full, the entry that was made first goes.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const LIFETIME: Millis = 5 * 60 * 1000;
const WORKSPACES_MAX = 1_000;

interface Entry {
  readonly state: Promise<string>;
  readonly expiresAt: Millis;
}

export interface StateCache {
  /** @param scopeId as the client wrote it: a workspace id or a legacy environment id */
  get(scopeId: string, build: () => Promise<string>): Promise<string>;
  /** After every write to a workspace's surveys, action classes, languages or settings. Takes both of its ids. */
  purge(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
}

export function createStateCache(clock: Clock, size = WORKSPACES_MAX): StateCache {
  const entries = new Map<string, Entry>();
  return {
    get(scopeId, build) {
      const known = entries.get(scopeId);
      if (known !== undefined && clock() < known.expiresAt) return known.state;
      entries.delete(scopeId);
      const oldest = entries.size >= size ? entries.keys().next().value : undefined;
      if (oldest !== undefined) entries.delete(oldest);
      const entry: Entry = { state: build(), expiresAt: clock() + LIFETIME };
      entries.set(scopeId, entry);
      entry.state.catch(() => {
        if (entries.get(scopeId) === entry) entries.delete(scopeId);
      });
      return entry.state;
    },
    purge({ workspaceId, environmentId }) {
      entries.delete(workspaceId);
      entries.delete(environmentId);
    },
  };
}
