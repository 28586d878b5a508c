/**
 * Starts two APIs on one database, each with its own connections as two processes would have, and sends writes to both
 * at once.
 */
import type { Test } from 'tap';
import {
  type ApiOptions,
  apiKey,
  countingRandom,
  startApi,
  type TestApi,
  workspaceId,
} from '#test/support/api-app.ts';
import { sharedDatabase } from '#test/support/database.ts';
import type { Sent } from '#test/support/description.ts';
import { openHttp } from '#test/support/http-send.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import type { Request, Send } from '#test/support/world.ts';
import { type DescribedApi, startDescribedApi } from '../docs/described-api.ts';

export const WRITERS = 12;

/** A request with the key of the workspace. */
export const asKey = (method: string, url: string, body?: unknown): Request => ({
  ...{ method, url, headers: { 'x-api-key': apiKey } },
  body: body === undefined ? undefined : JSON.stringify(body),
});

/** A request of an SDK. @param url below that of the workspace */
export const client = (method: string, url: string, body: unknown): Request => ({
  ...{ method, url: `/api/v1/client/${workspaceId}/${url}` },
  body: JSON.stringify(body),
});

export interface Twins {
  readonly first: DescribedApi;
  readonly second: TestApi;
  /** Sends all at once, alternating between the two. */
  atOnce(requests: readonly Request[]): Promise<readonly Sent[]>;
  /** Sends the same request twelve times. */
  twelve(request: Request): Promise<readonly Sent[]>;
}

export async function startTwins(t: Test, options: ApiOptions = {}): Promise<Twins> {
  const env = {
    ...{ DATABASE_URL: await sharedDatabase(t), STORAGE_PATH: temporaryFolder(t) },
    ...options.env,
  };
  const first = await startDescribedApi(t, { ...options, env }, WRITERS);
  const second = await startApi(t, { ...options, env: first.env, random: countingRandom('second') });
  const { close, send } = openHttp(await second.app.listen({ host: '127.0.0.1', port: 0 }), WRITERS);
  t.teardown(close);
  const senders: readonly Send[] = [first.world.options.send, send];
  const atOnce: Twins['atOnce'] = (requests) =>
    Promise.all(requests.map((request, i) => (senders[i % 2] ?? send)(request)));
  return {
    first,
    second,
    atOnce,
    twelve: (request) => atOnce(Array.from({ length: WRITERS }, () => request)),
  };
}

/** @returns the number of replies by status, such as `{ 200: 1, 409: 11 }` */
export function countByStatus(replies: readonly Sent[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
