import { type GatewayConfig, type GatewaySecrets, readConfig } from '#gateway/config.ts';
import type { Environment } from '#shared/configuration.ts';

export interface LibraryLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface LibrarySettings {
  readonly config: Pick<GatewayConfig, 'bounds' | 'trust' | 'upstreamTimeoutMs'>;
  readonly secrets: Pick<GatewaySecrets, 'store' | 'identitySecret'>;
}

/** Variables that the library reads. It includes removed Redis variables, because readConfig refuses them. */
const READ = /^GATEWAY_(?:REDIS_\w+|STORE_TIMEOUT_MS|IDENTITY_SECRET|TRUSTED_PROXIES|UPSTREAM_TIMEOUT_MS)$/;

/**
 * Ignores all other settings, which may be for a gateway in front.
 *
 * @throws ConfigError with all wrong settings
 */
export function readSettings(given: Environment): LibrarySettings {
  return readConfig(Object.fromEntries(Object.entries(given).filter(([name]) => READ.test(name))), 1);
}
