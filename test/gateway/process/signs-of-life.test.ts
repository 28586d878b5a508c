/** Signs of life of workers, by ticks that the test makes. */
import t from 'tap';
import { LOST_TICKS, SILENT_TICKS, SignsOfLife } from '#gateway/process/signs-of-life.ts';

function watched(...workers: string[]): {
  signs: SignsOfLife<string>;
  seen: string[];
  tick(n: number): void;
} {
  const seen: string[] = [];
  const signs = new SignsOfLife<string>({
    onSilent: (worker) => seen.push(`${worker} silent`),
    onHeard: (worker) => seen.push(`${worker} heard`),
    onLost: (worker) => seen.push(`${worker} lost`),
  });
  for (const worker of workers) signs.heard(worker);
  const tick = (n: number): void => {
    for (let i = 0; i < n; i++) signs.tick();
  };
  return { signs, seen, tick };
}

t.test('a worker that gives no sign of life is silent after 10 ticks, and lost after 30', async (t) => {
  const { signs, seen, tick } = watched('a', 'b');
  for (let i = 1; i < SILENT_TICKS; i++) {
    tick(1);
    signs.heard('b');
  }
  t.strictSame([seen, signs.isSilent], [[], false]);
  tick(1);
  t.strictSame([seen, signs.isSilent], [['a silent'], true]);
  signs.heard('b');
  for (let i = SILENT_TICKS + 1; i < LOST_TICKS; i++) {
    tick(1);
    signs.heard('b');
  }
  t.strictSame(seen, ['a silent']);
  tick(1);
  t.strictSame(seen, ['a silent', 'a lost']);
  tick(5);
  t.strictSame(seen, ['a silent', 'a lost'], 'it is reported once');
  signs.forget('a');
  t.equal(signs.isSilent, false);
});

t.test('a worker that is heard again begins anew', async (t) => {
  const { signs, seen, tick } = watched('a');
  tick(LOST_TICKS - 1);
  signs.heard('a');
  t.strictSame([seen, signs.isSilent], [['a silent', 'a heard'], false]);
  tick(LOST_TICKS - 1);
  t.strictSame(seen, ['a silent', 'a heard', 'a silent']);
});

t.test('no worker is lost if all of them and the clock stood still', async (t) => {
  const { signs, seen, tick } = watched('a', 'b');
  tick(SILENT_TICKS - 1);
  // The machine was suspended here. The timer of the ticks fires once, and then the signs arrive.
  tick(1);
  for (const worker of ['a', 'b']) signs.heard(worker);
  tick(SILENT_TICKS - 1);
  t.strictSame(seen, ['a silent', 'b silent', 'a heard', 'b heard']);
});
