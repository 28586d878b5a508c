/** Reports the version and the settings of the store, and whether other programs use it. */

import { storeScript } from './connection.ts';

export type StoreReport = Readonly<ReturnType<typeof readStoreReport>>;

/** Reads a sample of the keys, because a scan of millions would stop the store for everybody. */
export const REPORT = storeScript(`
local time = redis.call('TIME')
local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end
local sampled, foreign, cursor = 0, 0, '0'
for _ = 1, 10 do
  local page = redis.pcall('SCAN', cursor, 'COUNT', 50)
  if page.err then break end
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    sampled = sampled + 1
    if string.sub(key, 1, 4) ~= 'fg:{' then foreign = foreign + 1 end
  end
  if cursor == '0' then break end
end
return {
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
  info('server'), info('memory'), info('stats'), info('keyspace'), sampled, foreign
}
`);

/** @param reply reply of REPORT @param database number of the database that the gateway uses */
export function readStoreReport(reply: unknown, database: number) {
  const [now, server = '', memory = '', stats = '', keyspace = '', sampled, foreign]: unknown[] =
    Array.isArray(reply) ? reply : [];
  const databases = [...String(keyspace).matchAll(/^db(\d+):keys=[1-9]/gm)].map(([, number]) =>
    Number(number),
  );
  return {
    /** Such as 7.2.4; null if unknown, as the policy. */
    version: field(server, 'redis_version'),
    evictionPolicy: field(memory, 'maxmemory_policy'),
    /** 0 means no limit. */
    memoryBytesMax: Number(field(memory, 'maxmemory') ?? 0),
    evictedKeys: Number(field(stats, 'evicted_keys') ?? 0),
    sampledKeys: Number(sampled ?? 0),
    /** Number of sampled keys that other programs wrote. */
    foreignKeys: Number(foreign ?? 0),
    /** Number of other databases of this Redis that have keys. */
    otherDatabases: databases.filter((number) => number !== database).length,
    /** Milliseconds since the epoch. */
    now: Number(now),
  };
}

function field(section: unknown, name: string): string | null {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(String(section))?.[1] ?? null;
}
