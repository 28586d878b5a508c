/**
 * The replies of the environment route, in the cache of workspace-cache.ts.
 *
 * All processes build the same bytes within a window of five minutes, so an ETag of one is valid for all. The windows
 * of workspaces begin at different times, so that not all states are built at once.
 */
import { createHash } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';
import type { Kept, WorkspaceCache } from './workspace-cache.ts';

const WINDOW_MS: Millis = 5 * 60 * 1000;

export interface State extends Kept {
  /** JSON in UTF-8. */
  readonly body: Buffer;
  /** Strong validator with quotes (RFC 9110 8.8.3). */
  readonly etag: string;
}

export type StateCache = WorkspaceCache<State>;

/** @param json the body that the route sends */
export function toCachedState(json: string, validUntil: Millis): State {
  const body = Buffer.from(json);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return { body, etag, bytes: body.length, validUntil };
}

/** Returns the five minutes around `now` in which all processes build the same state of this workspace. */
export function windowOf(
  workspaceId: string,
  now: Millis,
): { readonly beginsAt: Millis; readonly endsAt: Millis } {
  const offset = createHash('sha256').update(workspaceId).digest().readUInt32BE() % WINDOW_MS;
  const beginsAt = Math.floor((now - offset) / WINDOW_MS) * WINDOW_MS + offset;
  return { beginsAt, endsAt: beginsAt + WINDOW_MS };
}
