/** The scripts for the markers of proven credentials in the store. */
import { storeScript } from '#gateway/store/connection.ts';

/** KEYS: proof markers. ARGV: their lifetime in milliseconds. */
export const PROVE = storeScript(`
for i = 1, #KEYS do redis.call('SET', KEYS[i], '1', 'PX', ARGV[1]) end
return #KEYS
`);
/** KEYS: a proof marker. */
export const WITHDRAW = storeScript(`return redis.call('DEL', KEYS[1])`);
/** KEYS: proof markers. Returns 1 for each that exists, otherwise 0. */
export const ARE_PROVEN = storeScript(`
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('EXISTS', KEYS[i]) end
return reply
`);
