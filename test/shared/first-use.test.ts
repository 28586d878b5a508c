import t from 'tap';
import { onFirstUse } from '#shared/first-use.ts';

t.test('creates the value at the first call, once for all callers', async (t) => {
  let made = 0;
  const ask = onFirstUse(async () => ({ number: ++made }));
  t.equal(made, 0);
  const [one, other] = await Promise.all([ask(), ask()]);
  t.equal(one, other);
  t.equal(await ask(), one);
  t.equal(made, 1);
});

t.test('all waiting callers get the error, and the next call tries again', async (t) => {
  let attempts = 0;
  const ask = onFirstUse(async () => {
    attempts += 1;
    if (attempts === 1) throw new Error('not yet');
    return attempts;
  });
  const waiting = [ask(), ask()];
  for (const one of waiting) await t.rejects(one, { message: 'not yet' });
  t.equal(await ask(), 2);
  t.equal(attempts, 2);
});
