/** A log of another program has no bodies, so a policy that counts one is skipped and its requests are incomplete. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { Judge } from '#gateway/workbench/replay/judge.ts';
import { policyFile } from '#test/support/gateway.ts';

t.test('a field of the body is unknown, because logs do not have it', async (t) => {
  const set = loadPolicies(
    policyFile(
      'name: account, route: POST /login, identifier: { body: email, required: true }, limit: 1, window: 1h',
      'name: address, route: POST /login, identifier: ip, limit: 5, window: 1h',
    ),
    'p.yaml',
  );
  const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
  const request = { at: 0, method: 'POST', target: '/login', status: 200, durationMs: 1, digests: null };
  const [peer, client] = ['192.0.2.1', '192.0.2.1'];
  const sender = { peer, client, forwardedFor: '', headers: [], concealed: [], holds: () => true };
  for (let i = 0; i < 2; i++) {
    const { weighed, unknown } = judge.judge({ ...request, sender });
    t.match(weighed, { kind: 'decided', decision: { kind: 'allow' } });
    t.strictSame(
      unknown.map(({ name }) => name),
      ['account'],
    );
  }
});
