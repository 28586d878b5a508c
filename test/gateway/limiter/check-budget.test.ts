/** The time budget of a check follows the store's reply times of the last minute. */
import t from 'tap';
import { CheckBudget, waitMsMax } from '#gateway/limiter/check-budget.ts';

const SETTING_MS = 50;

t.test('the budget is four times the 99th percentile, between one and five times the setting', async (t) => {
  const cases = [
    ['nothing is known', [], 50],
    ['a thousand fast ones', [[1000, 2]], 50],
    [
      'one in a hundred is slow',
      [
        [99, 2],
        [1, 300],
      ],
      50,
    ],
    [
      'two in a hundred are slow',
      [
        [98, 2],
        [2, 300],
      ],
      250,
    ],
    [
      'few answers, one of them slow',
      [
        [9, 2],
        [1, 30],
      ],
      150,
    ],
    ['all take 40 ms', [[500, 40]], 200],
    ['just within a step', [[500, 12.5]], 50],
    ['just beyond it', [[500, 13]], 100],
    [
      'given up and answered all the same',
      [
        [9, 2],
        [1, Number.POSITIVE_INFINITY],
      ],
      250,
    ],
  ] as const;
  for (const [what, answers, budgetMs] of cases) {
    const budget = new CheckBudget(() => 0, SETTING_MS);
    for (const [count, tookMs] of answers) for (let i = 0; i < count; i++) budget.note(tookMs);
    t.equal(budget.budgetMs, budgetMs, what);
  }
});

t.test('forgets slow answers after a minute', async (t) => {
  let now = 1_000_000;
  const budget = new CheckBudget(() => now, SETTING_MS);
  budget.note(300);
  t.equal(budget.budgetMs, 250);
  now += 30_000;
  t.equal(budget.budgetMs, 250, 'after half a minute');
  now += 30_000;
  t.equal(budget.budgetMs, 50);
  budget.note(300);
  now += 3_600_000;
  t.equal(budget.budgetMs, 50, 'after an hour without answers');
});

t.test('a request waits at most 750 ms for a lost store, with the default budget', async (t) => {
  t.equal(waitMsMax(SETTING_MS), 750);
});
