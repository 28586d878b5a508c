/** Tests that the table of reasons covers all codes, and that a record leads back to its reason. */
import t from 'tap';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import type { RefusalKind } from '#gateway/refusals/decision-ids.ts';
import { GROUP_REASONS, REASONS, reasonOf } from '#gateway/refusals/reasons.ts';

interface Row {
  readonly code: ErrorCode;
  readonly kind?: RefusalKind;
  readonly name?: string;
  readonly counted?: string;
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
    const { kind, name, counted } = row;
    if (kind === undefined) continue;
    const policy = name ?? (counted === undefined ? 'login' : 'bound waiting');
    t.equal(reasonOf({ decision: kind, policy, identifier: counted ?? 'ip' }), row, policy);
  }
  t.equal(reasonOf({ decision: 'banned', policy: 'ban by policy login', identifier: null }), REASONS.ban);
  t.equal(reasonOf({ decision: 'busy', policy: null, identifier: null }), REASONS.bound);
});
