/** Reads settings of the API for a test. */
import { readConfig } from '#api/config.ts';
import { ConfigError } from '#shared/configuration.ts';

/** @returns what is wrong with the settings, as the start would say it */
export function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env, '/srv');
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
