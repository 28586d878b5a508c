/** The gateway's settings, as far as they matter where nothing is proxied. */
import { type GatewayConfig, type GatewaySecrets, readConfig } from '#gateway/config.ts';
import type { Environment } from '#shared/configuration.ts';

export interface LibraryLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface LibrarySettings {
  readonly config: Pick<GatewayConfig, 'bounds' | 'storeTimeoutMs' | 'trust' | 'upstreamTimeoutMs'>;
  readonly secrets: Pick<GatewaySecrets, 'store' | 'identitySecret'>;
}

const READ = [
  'GATEWAY_REDIS_URL',
  'GATEWAY_REDIS_SENTINEL_PASSWORD',
  'GATEWAY_REDIS_CA',
  'GATEWAY_REDIS_CERT',
  'GATEWAY_REDIS_KEY',
  'GATEWAY_IDENTITY_SECRET',
  'GATEWAY_TRUSTED_PROXIES',
  'GATEWAY_STORE_TIMEOUT_MS',
  'GATEWAY_UPSTREAM_TIMEOUT_MS',
] as const;

/**
 * Others are left alone: they may be those of a gateway in front.
 *
 * @throws ConfigError that lists every setting that is wrong
 */
export function readSettings(given: Environment): LibrarySettings {
  const env: Record<string, string> = {};
  for (const name of READ) {
    const value = given[name];
    if (value !== undefined) env[name] = value;
  }
  return readConfig(env, 1);
}
