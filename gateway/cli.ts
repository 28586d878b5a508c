/** `check [FILE]`: is this policy file right? Exit 0 when it is, 1 with every mistake, 2 for a wrong call. */
import { ConfigError } from '#shared/configuration.ts';
import { readPolicyFile } from './config.ts';
import { loadPolicies } from './policy/load.ts';
import { PolicyFileError } from './policy/problems.ts';

const USAGE = 'usage: check [FILE]   checks a policy file (policies.yaml unless named)\n';

function main([command, file = 'policies.yaml', ...more]: readonly string[]): number {
  if (command !== 'check' || more.length > 0) {
    process.stderr.write(USAGE);
    return 2;
  }
  try {
    const set = loadPolicies(readPolicyFile(file), file);
    process.stdout.write(
      `${file}: ${set.policies.length} policies, ${set.exclude.length} exclusions, no mistakes\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof PolicyFileError || error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

process.exitCode = main(process.argv.slice(2));
