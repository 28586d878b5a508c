/**
 * Tries every order of requests, replies and faults within small bounds. No window admits more than
 * docs/policies-in-detail.md says.
 */
import t from 'tap';
import { checkAll, NOTHING } from '#test/support/limiter-model/check-all.ts';
import { replay } from '#test/support/limiter-model/search.ts';

t.setTimeout(0);

const two = { gateways: 2, limit: 2 };

t.test('the search’s counterexamples no longer violate the limit', async (t) => {
  await t.test('the store learns of a place that was taken while leases were renewed', async (t) => {
    const bounds = { ...NOTHING, requests: 2, storeLost: 1, finishes: 1 };
    const world = await replay({ ...two, algorithm: 'concurrency', values: false, bounds }, [
      ...['request 0', 'lose', 'back', 'time 0', 'time 0'],
      ...['finish 0', 'request 0', 'answer 0', 'answer 0', 'time 1', 'time 1'],
    ]);
    t.equal(world.violation(), null);
    await world.happen('answer 0');
    t.equal(world.violation(), null, 'after the second renewal');
  });

  await t.test('a late answer does not hide what was admitted meanwhile', async (t) => {
    const bounds = { ...NOTHING, requests: 16, errors: 1 };
    const world = await replay({ gateways: 2, limit: 8, algorithm: 'token-bucket', values: false, bounds }, [
      // The store has carried out neither of the two, and the gateway gives up both.
      ...['request 0', 'request 0', 'fail 0', 'request 0', 'request 0', 'answer 0'],
      ...Array<string>(5).fill('request 0'),
      ...Array<string[]>(7).fill(['request 1', 'answer 1']).flat(),
    ]);
    t.equal(world.admitted, 4 + 7, 'a share, and what is left in the store');
    t.equal(world.violation(), null);
  });
});

t.test('the bound of docs/policies-in-detail.md is tight', async (t) => {
  for (const [gateways, limit, most] of [
    [2, 2, 3],
    [3, 3, 5],
    [2, 3, 5],
  ] as const) {
    // The gateway with the smallest share uses up the limit, and the others do not learn of it.
    const spender = gateways - 1;
    const bounds = { ...NOTHING, requests: 2 * limit, storeLost: 1 };
    const events = Array.from({ length: limit }, () => [`request ${spender}`, `answer ${spender}`]).flat();
    events.push('lose');
    for (let other = 0; other < spender; other++) events.push(`request ${other}`, `request ${other}`);
    const world = await replay({ gateways, limit, algorithm: 'fixed-window', values: false, bounds }, events);
    t.equal(world.admitted, most, `${gateways} gateways, limit ${limit}`);
    t.equal(world.violation(), null);
  }
});

await checkAll(t, [
  { ...two, bounds: { ...NOTHING, requests: 4, windowChanges: 1, finishes: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 3, storeLost: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 2, storeLost: 1, finishes: 1, windowChanges: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 3, connectionsLost: 1, lateReplies: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 3, errors: 1, lateReplies: 1 } },
  // Each gateway may admit two alone, and charges the store again if that fails.
  { gateways: 2, limit: 4, bounds: { ...NOTHING, requests: 2, storeLost: 1, errors: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 4, storeEmptied: 1 } },
  { ...two, bounds: { ...NOTHING, requests: 4, gatewaysKilled: 1 } },
  { ...two, newcomers: true, bounds: { ...NOTHING, requests: 4, windowChanges: 1 } },
  { ...two, newcomers: true, bounds: { ...NOTHING, requests: 3, storeLost: 1 } },
  { gateways: 2, limit: 3, bounds: { ...NOTHING, requests: 5 } },
  { gateways: 3, limit: 3, bounds: { ...NOTHING, requests: 4 } },
]);
