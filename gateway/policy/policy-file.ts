/** Reads the policy file from the disk at the start. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigError, type Environment } from '#shared/configuration.ts';
import { readRegularFile } from '#shared/regular-file.ts';

const SHIPPED = fileURLToPath(new URL('../../policies.yaml', import.meta.url));

/**
 * Floodgate comes with the policies of the survey API. They cover nothing of another application, so in front of one
 * the start asks for a policy file.
 *
 * @throws ConfigError
 */
export function assertPoliciesAreChosen({ GATEWAY_UPSTREAM, GATEWAY_POLICIES }: Environment): void {
  if (!GATEWAY_UPSTREAM || GATEWAY_POLICIES || !isSameFile('policies.yaml', SHIPPED)) return;
  throw new ConfigError([
    'GATEWAY_POLICIES: it is not set, and policies.yaml here has the limits of the survey API. "npx floodgate init my-policies.yaml" writes a file for your application; then set GATEWAY_POLICIES=my-policies.yaml. To use the limits of the survey API, set GATEWAY_POLICIES=policies.yaml',
  ]);
}

function isSameFile(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false;
  }
}

/** @throws ConfigError when the file cannot be read */
export function readPolicyFile(file: string): string {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new ConfigError([whyUnreadable(file, (error as NodeJS.ErrnoException).code)]);
  }
}

function whyUnreadable(file: string, code: string | undefined): string {
  return code === 'ENOENT'
    ? `there is no policy file ${file}; "npx floodgate init ${file}" writes one, or set GATEWAY_POLICIES to yours`
    : `the policy file ${file} cannot be read (${code}); set GATEWAY_POLICIES to a file that the user of the gateway can read`;
}
