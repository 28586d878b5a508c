/** Settings that limit requests: the store, the client's address, and how long the application may take. */
import { readStoreAccess, type StoreAccess } from '#gateway/store/access.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';

/** A separate object, so that the settings can be logged. */
export interface LimitingSecrets {
  /** The store of the counters; null if they are in this process. */
  readonly store: StoreAccess | null;
  /** The salt of digests; null if the gateway generates one and keeps it in the store. */
  readonly identitySecret: string | null;
}

export const LIMITING_VARIABLES = [
  {
    name: 'GATEWAY_REDIS_URL',
    meaning: 'address of [Redis](operating.md#redis); unset: counters are in the memory of the process',
  },
  {
    name: 'GATEWAY_TRUSTED_PROXIES',
    default: 'none',
    meaning: '[proxies](operating.md#proxies-in-front) whose `X-Forwarded-For` the gateway trusts',
  },
  {
    name: 'GATEWAY_IDENTITY_SECRET',
    meaning:
      'secret salt for the digests of addresses and keys; unset: the gateway generates one and stores it in Redis',
  },
  {
    name: 'GATEWAY_UPSTREAM_TIMEOUT_MS',
    default: '30000',
    meaning:
      'milliseconds that the application has to begin its final reply, or to read the next one or two megabytes of an upload',
  },
] as const satisfies readonly Variable[];

type LimitingName = (typeof LIMITING_VARIABLES)[number]['name'];

export function readLimitingSettings(read: SettingsReader<LimitingName>) {
  const secrets: LimitingSecrets = {
    store: read.parse('GATEWAY_REDIS_URL', null, readStoreAccess),
    identitySecret: read.text('GATEWAY_IDENTITY_SECRET') || null,
  };
  return {
    secrets,
    settings: {
      trust: read.parse<ProxyTrust>('GATEWAY_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies),
      upstreamTimeoutMs: read.integer('GATEWAY_UPSTREAM_TIMEOUT_MS', 1, 3_600_000),
    },
  };
}
