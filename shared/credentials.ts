/**
 * Settings from files. systemd's LoadCredential and the secrets of containers are folders that have one file for each
 * secret. A secret in such a file is not in the environment, which child processes inherit and `docker inspect` shows.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, type Environment } from './configuration.ts';
import { readRegularFile } from './regular-file.ts';

/** Other files, such as a private key, are none of the settings. */
const VARIABLE = /^[A-Z][A-Z0-9_]*$/;

/**
 * Adds the files of the folder CREDENTIALS_DIRECTORY. A variable that is set takes precedence.
 *
 * @throws ConfigError if the folder or a file in it cannot be read
 */
export function withCredentials(env: Environment): Environment {
  const folder = env.CREDENTIALS_DIRECTORY?.trim();
  if (!folder) return env;
  const names = reading('CREDENTIALS_DIRECTORY', folder, () => readdirSync(folder));
  const added: Record<string, string> = {};
  for (const name of names) {
    const file = join(folder, name);
    if (!VARIABLE.test(name) || env[name]?.trim()) continue;
    const text = reading(name, file, () => (statSync(file).isDirectory() ? null : readRegularFile(file)));
    if (text !== null) added[name] = text;
  }
  return { ...env, ...added };
}

function reading<T>(name: string, path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError([`${name}: ${path} cannot be read (${code}); let the user of the program read it`]);
  }
}
