import {
  LIMITING_VARIABLES,
  type LimitingSecrets,
  type LimitingSettings,
  REMOVED_LIMITING_VARIABLES,
  readLimitingSettings,
} from '#gateway/request/settings.ts';
import { type Environment, readSettings as read } from '#shared/configuration.ts';

export interface LibraryLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface LibrarySettings {
  readonly settings: LimitingSettings;
  readonly secrets: LimitingSecrets;
}

/**
 * Ignores all other settings, which may be for a gateway in front.
 *
 * @throws ConfigError with all wrong settings
 */
export function readSettings(given: Environment): LibrarySettings {
  return read(
    { variables: LIMITING_VARIABLES, removed: REMOVED_LIMITING_VARIABLES },
    given,
    readLimitingSettings,
  );
}
