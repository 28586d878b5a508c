/** Tests when policies with `newcomers` begin to act, as the policy file and the store change. */
import t from 'tap';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { DAY_MS } from '#gateway/policy/groups.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { Learning } from '#gateway/request/learning.ts';
import { openLimiting } from '#gateway/request/open-limiting.ts';
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
  const learning = new Learning({
    now: () => now,
    hasStore: true,
    onChange: () => undefined,
    log: { info: () => undefined },
  });
  t.teardown(() => learning.close());
  const mode = (): string | undefined => learning.applyTo(WITH).policies[1]?.mode;
  t.equal(mode(), 'shadow', 'the store was not reached yet');
  learning.hear('a', now);
  t.equal(mode(), 'shadow');
  now += 2 * DAY_MS;
  t.equal(mode(), 'enforce');

  learning.applyTo(WITHOUT);
  now += 60 * DAY_MS;
  t.equal(mode(), 'shadow', 'the histories may have ended meanwhile');
  learning.hear('a', now);
  t.equal(mode(), 'shadow');
  now += 2 * DAY_MS;
  t.equal(mode(), 'enforce');
  learning.applyTo(WITHOUT);
  learning.hear('a', now - 2 * DAY_MS);
  t.equal(mode(), 'enforce', 'they have gone on');
  t.equal(learning.since('a'), now - 2 * DAY_MS);
  t.equal(learning.since('b'), null, 'with another salt they are others');
});

t.test('without a store, histories end as in Redis when no policy uses them', async (t) => {
  let now = 100 * DAY_MS;
  const { enforcement, use, start, close } = await openLimiting({
    policies: WITH,
    secrets: { store: null, identitySecret: 'salt' },
    clock: () => now,
    wallClock: () => now,
    log: { info: () => undefined, warn: () => undefined },
    replica: 'a',
    newSalt: () => 'salt',
    onBan: () => undefined,
    randomInt: () => 0,
    rememberedMax: 16,
    trust: { kind: 'none' },
    headerFilter: new HeaderFilter(),
    onUntrustedChain: () => undefined,
  });
  t.teardown(close);
  await start();
  /** Uses a file, and waits until the histories have begun. */
  const modeWith = async (set: PolicySet): Promise<string | undefined> => {
    use(set);
    await new Promise(setImmediate);
    return enforcement.policies.policies[1]?.mode;
  };
  t.equal(await modeWith(WITH), 'shadow');
  now += 2 * DAY_MS;
  t.equal(await modeWith(WITH), 'enforce');
  await modeWith(WITHOUT);
  now += 2 * DAY_MS - 1;
  t.equal(await modeWith(WITH), 'enforce', 'a short pause');
  await modeWith(WITHOUT);
  await modeWith(WITHOUT);
  now += 2 * DAY_MS;
  t.equal(await modeWith(WITH), 'shadow', 'a long one');
  now += 2 * DAY_MS;
  t.equal(await modeWith(WITH), 'enforce');
});
