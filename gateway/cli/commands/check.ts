/** `check [FILE]`: checks a policy file, and runs its tests. */

import { readPolicyText } from '#gateway/cli/command/arguments.ts';
import { type CommandContext, command, POLICY_FILE } from '#gateway/cli/command/command.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';
import { PolicyFileError, sentenceOf } from '#gateway/policy/problems.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';

export const CHECK = command({
  describe: 'Is this policy file right?',
  options: { file: { ...POLICY_FILE, isPositional: true, describe: 'The policy file' } },
  examples: [['$0 check policies.yaml', 'Lists every mistake with line, column and fix']],
  run: ({ file, json }, context) => check(file, json, context),
});

const NO_TESTS = { passed: 0, failed: 0, failures: [] };

function check(file: string, json: boolean, { terminal }: CommandContext): ExitCode {
  try {
    const text = readPolicyText(file);
    const set = loadPolicies(text, file);
    const warnings = warningsOf(set, placesIn(text));
    const failures = runTests(set);
    const tests = { passed: set.tests.length - failures.length, failed: failures.length, failures };
    const ok = failures.length === 0;
    if (json) {
      terminal.json({ ok, file, policies: set.policies.length, problems: [], warnings, tests });
      return ok ? EXIT.ok : EXIT.no;
    }
    for (const warning of warnings)
      terminal.error(sentenceOf(file, { ...warning, message: `warning: ${warning.message}` }));
    if (ok) {
      const tested = set.tests.length === 0 ? '' : `, ${set.tests.length} tests passed`;
      terminal.line(
        `${file}: ${set.policies.length} policies, ${set.exclude.length} exclusions, no mistakes${tested}`,
      );
    } else {
      for (const { line, name, message } of failures)
        terminal.error(`${file}:${line}: test "${name}" fails: ${message}`);
    }
    return ok ? EXIT.ok : EXIT.no;
  } catch (error) {
    if (!(json && error instanceof PolicyFileError)) throw error;
    terminal.json({ ok: false, file, policies: 0, problems: error.problems, warnings: [], tests: NO_TESTS });
    return EXIT.no;
  }
}
