/** A file with a failing test is not used. What tests can say stands in test/gateway/cli/sessions/policy-tests.md. */
import t from 'tap';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { loadTestedPolicies } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { policyFile } from '#test/support/gateway.ts';

t.test('a file with a failing test is not used', async (t) => {
  const text = `${policyFile()}\ntests: [{ name: wrong, request: GET /health, expect: { status: 429 } }]\n`;
  t.throws(() => loadTestedPolicies(text, 'p.yaml'), PolicyFileError);
  t.throws(() => loadTestedPolicies(text, 'p.yaml'), {
    message: /p\.yaml:7:1: test "wrong" fails: status: expected 429, got 200/,
  });
});
