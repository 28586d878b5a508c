import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t from 'tap';
import type { PolicySet } from '#gateway/policy/policy.ts';
import { PolicyWatch } from '#gateway/policy/watch.ts';

const GOOD = readFileSync(resolve(import.meta.dirname, '../../../policies.yaml'), 'utf8');

/** A watch over a text instead of a file, and what it reported. */
function watchOf() {
  const state = { text: GOOD, loaded: [] as PolicySet[], refused: [] as Error[] };
  const watch = new PolicyWatch(GOOD, {
    file: 'policies.yaml',
    read: () => state.text,
    onLoaded: (set) => state.loaded.push(set),
    onRefused: (error) => state.refused.push(error),
  });
  return { state, watch };
}

t.test('a reload takes the file into use, also when it seems unchanged', async (t) => {
  const { state, watch } = watchOf();
  watch.reload();
  t.equal(state.loaded.length, 1);
  state.text = GOOD.replace('limit: 40', 'limit: 41');
  watch.reload();
  t.equal(state.loaded[1]?.policies[0]?.limit, 41);
  t.strictSame(state.refused, []);
});

t.test('a file with a mistake changes nothing and says where; mended, it is taken', async (t) => {
  const { state, watch } = watchOf();
  state.text = GOOD.replace('limit: 40', 'limit: 0');
  watch.reload();
  t.strictSame(state.loaded, []);
  t.match(state.refused[0], { name: 'PolicyFileError', message: /^policies\.yaml:\d+:\d+: limit is 0/ });
  state.text = GOOD;
  watch.reload();
  t.equal(state.loaded.length, 1);
});

t.test('a file that cannot be read is refused, not fatal', async (t) => {
  const refused: Error[] = [];
  const watch = new PolicyWatch(GOOD, {
    file: 'policies.yaml',
    read: () => {
      throw new Error('gone');
    },
    onLoaded: () => t.fail('nothing was read'),
    onRefused: (error) => refused.push(error),
  });
  watch.reload();
  t.match(refused, [{ message: 'gone' }]);
});
