/** Proves that the abuse bench measures what it says: the attack arrives, and the visitor gets replies. */
import t from 'tap';
import { type AbuseResult, runAttack } from '#bench/abuse/run.ts';
import { missed } from '#bench/abuse/verdict.ts';

/** On a slow machine a reply may take long; only the bench itself calls that a failure. */
const SHORT = { aloneSeconds: 0.5, attackSeconds: 1, replyMsMax: 120_000 };

t.test('on the gateway', async (t) => {
  const run = (name: string): Promise<AbuseResult> => runAttack(name, SHORT);

  await t.test('without an attack the visitor gets every reply', async (t) => {
    const { alone, attacked, directP99Ms, attack, rssPeakMb, died } = await run('calm');
    t.same(alone.failures, {});
    t.same(attacked.failures, {}, 'the same replies in the second phase');
    t.equal(attacked.success, 1);
    t.equal(attacked.sent, 40);
    t.ok(directP99Ms > 0, 'the upstream alone is measured too');
    t.equal(attack.connected, 0);
    t.ok(rssPeakMb > 10, 'memory is measured');
    t.notOk(died);
  });

  await t.test('churn: connections are made, and their requests reach the upstream', async (t) => {
    const { attack, admitted, attacked } = await run('churn');
    t.ok(attack.connected > 0);
    t.ok((attack.answers['200'] ?? 0) > 0, 'the attacker gets replies');
    t.ok(admitted > 0, 'the attacker reaches the upstream');
    t.equal(attacked.sent, 40, 'the visitor goes on during the attack');
  });

  await t.test('a flood of invented keys is stopped by the limit, and its keys are counted', async (t) => {
    const result = await run('invented-keys');
    t.ok((result.attack.answers['429'] ?? 0) > 0, 'some invented keys are denied');
    t.ok((result.attack.answers['401'] ?? 0) > 0, 'some reach the upstream, which refuses them');
    t.ok(result.redisKeys > 0, 'the keys in Redis are counted');
  });
});

t.test('beside a client that gets banned, both visitors get every reply', async (t) => {
  for (const name of ['banned-neighbour', 'banned-stranger']) {
    const { attacked, attack, bans } = await runAttack(name, SHORT);
    t.equal(bans, 1, `${name}: only the attacker is banned`);
    t.ok((attack.answers['429'] ?? 0) > 0);
    t.same(attacked.failures, {}, name);
    t.equal(attacked.success, 1);
  }
});

t.test('beside attacks on limits, the visitor gets every reply', async (t) => {
  const statuses = {
    'shared-limit': ['200', '429'],
    newcomer: ['200', '429'],
    'distinct-values': ['200'],
    'long-queries': ['200', '429'],
  };
  for (const [name, expected] of Object.entries(statuses)) {
    const result = await runAttack(name, SHORT);
    t.same(Object.keys(result.attack.answers).sort(), expected, `${name}: the attack arrives`);
    t.same(result.attacked.failures, {}, name);
    t.equal(result.attacked.success, 1);
    t.notOk('admitted' in missed(name, result), `${name}: the attacker has its share`);
  }
});

t.test('beside a swarm, regulars get every reply, and newcomers no more than their limit', async (t) => {
  const plan = { ...SHORT, aloneSeconds: 2, attackSeconds: 4 };
  const { alone, attacked, attack, admitted, windows } = await runAttack('swarm', plan);
  t.equal(alone.sent, 200, 'each regular comes once before the swarm');
  t.same(attacked.failures, {}, 'each request of a regular is served');
  t.equal(attacked.sent, 400);
  t.ok((attack.answers['200'] ?? 0) > 0, 'newcomers reach the upstream');
  t.ok(admitted <= windows * 1000, `${admitted} in ${windows} windows`);
});

t.test('the verdict names each bound that was missed', async (t) => {
  const figures = { sent: 100, success: 1, p50Ms: 1, p99Ms: 8, failures: {} };
  const result: AbuseResult = {
    alone: figures,
    attacked: { ...figures, p99Ms: 16 },
    directP99Ms: 2,
    rssPeakMb: 180,
    redisKeys: 0,
    admitted: 100,
    smuggled: 0,
    bans: 1,
    windows: 1,
    newcomersServed: 1,
    attack: { connected: 1, requests: 1, answers: {} },
    died: false,
  };
  const names = (change: Partial<AbuseResult>, name = 'invented-keys'): string[] =>
    Object.keys(missed(name, { ...result, ...change }));
  t.same(names({}), []);
  t.same(names({ attacked: { ...figures, p99Ms: 16.1 } }), ['p99'], 'more than twice as long');
  const quick = { ...figures, p99Ms: 0.5 };
  t.same(names({ alone: quick, attacked: { ...quick, p99Ms: 9 } }), [], 'noise below the floor');
  t.same(names({ attacked: { ...figures, success: 0.99 } }), ['success']);
  t.same(names({ attacked: { ...figures, success: 0, p99Ms: Number.NaN } }), ['success', 'p99']);
  t.same(names({ rssPeakMb: 181 }), ['RSS']);
  t.same(names({ redisKeys: 20_000 }), ['Redis keys']);
  t.same(names({ admitted: 101 }), ['admitted'], 'over the limit of one minute');
  t.same(names({ admitted: 200, windows: 2 }), [], 'two windows have two limits');
  t.same(names({ died: true }), ['lives']);
  t.same(names({ bans: 0 }, 'banned-neighbour'), ['bans']);
  t.same(names({ smuggled: 1 }, 'smuggled-headers'), ['smuggled']);
  t.same(names({ newcomersServed: 0.89 }, 'swarm'), ['newcomers']);
});
