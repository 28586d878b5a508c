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
  switch (code) {
    case 'ENOENT':
      return `there is no policy file ${file}; "npx floodgate init ${file}" writes one, or set GATEWAY_POLICIES to yours`;
    case 'EISDIR':
      return `the policy file ${file} is a folder; set GATEWAY_POLICIES to the file in it`;
    case 'not a regular file':
      return `the policy file ${file} is not a regular file; set GATEWAY_POLICIES to one`;
    default:
      return `the policy file ${file} cannot be read (${code}); let the user of the gateway read it`;
  }
}
