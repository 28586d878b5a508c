/** Proves that the abuse bench measures what it says: the attack arrives, and the visitor gets replies. */
import t from 'tap';
import type { AbuseScenario } from '#bench/abuse/scenario.ts';
import { SCENARIOS } from '#bench/abuse/scenarios.ts';
import { runSwarm } from '#bench/abuse/swarm.ts';
import { judge } from '#bench/abuse/verdict.ts';
import { type AbuseResult, runScenario } from '#bench/abuse/visit.ts';

/** On a slow machine a reply may take long; only the bench itself calls that a failure. */
const SHORT = { aloneSeconds: 0.5, attackSeconds: 1, replyMsMax: 120_000 };

function scenario(name: string): AbuseScenario {
  const found = SCENARIOS.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`there is no scenario ${name}`);
  return found;
}

t.test('on the gateway', async (t) => {
  const run = (name: string): Promise<AbuseResult> => runScenario(scenario(name), SHORT);

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
    t.ok(judge(scenario('invented-keys'), result).some(({ name }) => name === 'Redis keys'));
  });
});

t.test('beside a client that gets banned, both visitors get every reply', async (t) => {
  for (const name of ['banned-neighbour', 'banned-stranger']) {
    const { attacked, attack, bans } = await runScenario(scenario(name), SHORT);
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
    const result = await runScenario(scenario(name), SHORT);
    t.same(Object.keys(result.attack.answers).sort(), expected, `${name}: the attack arrives`);
    t.same(result.attacked.failures, {}, name);
    t.equal(result.attacked.success, 1);
    const missed = judge(scenario(name), result).filter(({ isReached }) => !isReached);
    t.notOk(
      missed.some((goal) => goal.name === 'admitted'),
      `${name}: the attacker has its share`,
    );
  }
});

t.test('beside a swarm, regulars get every reply, and newcomers no more than their limit', async (t) => {
  const plan = { seconds: 4, windowMs: 2000, limit: 50, regulars: 20, honest: 4 };
  const result = await runSwarm({ ...plan, replyMsMax: SHORT.replyMsMax });
  t.equal(result.regulars, 400);
  t.equal(result.regular, 400, 'each request of a regular is served');
  t.ok(result.newcomers > 0, 'newcomers reach the upstream');
  t.ok(result.newcomers <= result.windows * 50, `${result.newcomers} in ${result.windows} windows`);
  t.ok(result.rssMb > 10, 'memory is measured');
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
    minutes: 1,
    attack: { connected: 1, requests: 1, answers: {} },
    died: false,
  };
  const missed = (change: Partial<AbuseResult>, name = 'invented-keys'): string[] =>
    judge(scenario(name), { ...result, ...change })
      .filter(({ isReached }) => !isReached)
      .map((goal) => goal.name);
  t.same(missed({}), []);
  t.same(missed({ attacked: { ...figures, p99Ms: 16.1 } }), ['p99'], 'more than twice as long');
  const quick = { ...figures, p99Ms: 0.5 };
  t.same(missed({ alone: quick, attacked: { ...quick, p99Ms: 9 } }), [], 'noise below the floor');
  t.same(missed({ attacked: { ...figures, success: 0.99 } }), ['success']);
  t.same(missed({ attacked: { ...figures, success: 0, p99Ms: Number.NaN } }), ['success', 'p99']);
  t.same(missed({ rssPeakMb: 181 }), ['RSS']);
  t.same(missed({ redisKeys: 20_000 }), ['Redis keys']);
  t.same(missed({ admitted: 101 }), ['admitted'], 'over the limit of one minute');
  t.same(missed({ admitted: 200, minutes: 2 }), [], 'two windows have two limits');
  t.same(missed({ died: true }), ['lives']);
  t.same(missed({ bans: 0 }, 'banned-neighbour'), ['bans']);
  t.same(missed({ smuggled: 1 }, 'smuggled-headers'), ['smuggled']);
});
