/** Background jobs run one at a time, after the reply. Their number is bounded, and errors are logged. */
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { createBackground } from '#api/work/background.ts';

const silent = { error: () => undefined };

t.test('runs one job at a time, after the reply is sent', async (t) => {
  const background = createBackground(silent);
  const sent = Promise.withResolvers<void>();
  const order: string[] = [];
  const piece = (name: string) => async (): Promise<void> => {
    order.push(`${name} begins`);
    await turn();
    order.push(`${name} ends`);
  };
  background.add(piece('late'), sent.promise);
  background.add(piece('first'));
  background.add(piece('second'));
  background.add(piece('cut off'), Promise.reject(new Error('the client left')));
  while (order.length < 6) await turn();
  t.notMatch(order, ['late begins']);
  sent.resolve();
  await background.idle();
  t.same(order, [
    'first begins',
    'first ends',
    'second begins',
    'second ends',
    'cut off begins',
    'cut off ends',
    'late begins',
    'late ends',
  ]);
});

t.test('logs an error and runs the next job', async (t) => {
  const errors: object[] = [];
  const background = createBackground({ error: (fields) => errors.push(fields) });
  const fault = new Error('the database is gone');
  let ran = false;
  background.add(() => Promise.reject(fault));
  background.add(async () => {
    ran = true;
  });
  await background.idle();
  t.same(errors, [{ err: fault }]);
  t.ok(ran);
});

t.test('refuses more than 500 waiting jobs with 429', async (t) => {
  const background = createBackground(silent);
  const held = Promise.withResolvers<void>();
  for (let i = 0; i < 500; i += 1) background.add(() => held.promise);
  t.throws(() => background.add(async () => undefined), { code: 'too_many_requests' });
  held.resolve();
  await background.idle();
  background.add(async () => undefined);
  await background.idle();
});
