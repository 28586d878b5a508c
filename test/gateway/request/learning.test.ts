/** Tests when policies with `newcomers` begin to act, as the policy file and the store change. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { DAY_MS } from '#gateway/policy/regulars.ts';
import { Learning } from '#gateway/request/learning.ts';
import { policyFile } from '#test/support/gateway.ts';

const load = (more = '') =>
  loadPolicies(
    policyFile(`name: site, route: GET /*, identifier: ip, limit: 9, window: 1h${more}`),
    'p.yaml',
  );
const WITH = load(', newcomers: { limit: 5, window: 1h }');
const WITHOUT = load();

t.test('a file that has newcomers again learns as the store says, not as it did before', async (t) => {
  let now = 100 * DAY_MS;
  let lost = 0;
  const learning = new Learning({
    now: () => now,
    onChange: () => undefined,
    onLost: () => lost++,
    log: { info: () => undefined },
  });
  t.teardown(() => learning.close());
  const mode = (): string | undefined => learning.applyTo(WITH).policies[1]?.mode;
  t.equal(mode(), 'shadow', 'the store was not reached yet');
  learning.hear(now);
  t.equal(mode(), 'shadow');
  now += 2 * DAY_MS;
  t.equal(mode(), 'enforce');

  learning.applyTo(WITHOUT);
  now += 60 * DAY_MS;
  t.equal(mode(), 'shadow', 'the histories may have ended meanwhile');
  learning.hear(now);
  t.equal(lost, 1);
  t.equal(mode(), 'shadow');
  now += 2 * DAY_MS;
  t.equal(mode(), 'enforce');
  learning.applyTo(WITHOUT);
  learning.hear(now - 2 * DAY_MS);
  t.equal(mode(), 'enforce', 'they have gone on');
  t.equal(lost, 1);
});
