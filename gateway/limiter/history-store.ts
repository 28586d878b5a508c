/** How the days of clients stand in the store. */
import type { Identity } from '#gateway/identity/digest.ts';
import { HISTORY_DAYS } from '#gateway/policy/regulars.ts';
import { storeScript } from '#gateway/store/connection.ts';
import type { History } from './history.ts';

/** @returns the key of the days of a client */
export function historyKey({ digest }: Identity): string {
  return `fg:{${digest}}:days`;
}

/** @param packed what the store has under `historyKey` */
export function readHistory(packed: number): History {
  return { last: Math.floor(packed / 2 ** HISTORY_DAYS), days: packed % 2 ** HISTORY_DAYS };
}

/**
 * Deletes the days of a client, which is then no regular any more. The proof of a credential stays.
 *
 * KEYS: history and marker.
 */
export const FORGET_VISITS = storeScript(`
if redis.call('DEL', KEYS[1]) == 1 then return redis.call('DEL', KEYS[2]) end
return 0
`);
