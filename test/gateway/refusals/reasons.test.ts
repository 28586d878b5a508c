/** Tests that the table of reasons covers all codes, and that a record leads back to its reason. */
import t from 'tap';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import type { RefusalKind } from '#gateway/refusals/decision-record.ts';
import { GROUP_REASONS, REASONS, reasonOfRecord } from '#gateway/refusals/reasons.ts';

interface Row {
  readonly code: ErrorCode;
  readonly decision?: RefusalKind;
  readonly name?: string;
  readonly counted?: string | undefined;
}

const rows: readonly Row[] = [...Object.values(REASONS), ...GROUP_REASONS];

t.test('every code has a reason', async (t) => {
  // An entry of the list deny may ask for 403.
  const used = new Set<ErrorCode>(['gateway_forbidden']);
  for (const { code } of rows) used.add(code);
  t.strictSame([...used].sort(), Object.keys(CODES).sort());
});

t.test('a record leads back to its reason', async (t) => {
  for (const row of rows) {
    const { decision, name, counted } = row;
    if (decision === undefined) continue;
    const policy = name ?? (counted === undefined ? 'login' : 'bound waiting');
    t.equal(reasonOfRecord({ decision, policy, identifier: counted ?? 'ip' }), row, policy);
  }
  const name = 'ban by policy login';
  t.equal(reasonOfRecord({ decision: 'banned', policy: name, identifier: name }), REASONS.ban);
});
