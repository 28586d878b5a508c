/** Warns of valid settings that are probably mistakes, such as policies that can never deny. Pure. */
import { warnOfIdentifier } from '#gateway/policy/keys/identifier-keys.ts';
import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import { QUOTA_KEYS } from '#gateway/policy/keys/quota-keys.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { inOrder, type Path, type Problem, type Report } from '#gateway/policy/problems.ts';

export function warningsOf(
  set: PolicySet,
  placeOf: (path: Path, point: 'value' | 'key') => { readonly line: number; readonly column: number },
): Problem[] {
  const warnings = new Map<string, Problem>();
  const warn: Report = (path, message, fix, point = 'value') => {
    const { line, column } = placeOf(path, point);
    // All policies of a row warn of a key of the row.
    warnings.set(`${line}:${column} ${message}`, { line, column, message, fix });
  };
  for (const identifier of set.identifiers) warnOfIdentifier(identifier, set, warn);
  const { sizes, notes } = set.listFiles;
  for (const note of notes) warn(...note);
  for (const [name, size] of sizes)
    if (size === 0) warn([], `${name} has no entries`, 'write some, or remove the file from the policy file');
  for (const policy of set.policies) {
    const row = policy.at.slice(0, 2);
    for (const [name, key] of POLICY_ROWS) {
      const warning = key.warn?.(policy, set) ?? null;
      if (warning === null) continue;
      const [message, fix, point] = warning;
      warn([...(name in QUOTA_KEYS ? policy.at : row), name], message, fix, point);
    }
  }
  return inOrder([...warnings.values()]);
}
