import { readConfig } from '#gateway/config.ts';

/** Returns the names of the optional parts that these settings switch on. */
export function partsIn(env: Readonly<Record<string, string>>): string[] {
  return readConfig(env).parts.map(({ name }) => name);
}
