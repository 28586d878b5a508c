import t from 'tap';
import { createStateCache, type State, toCachedState } from '#api/cache/state-cache.ts';

const MINUTE = 60_000;
const textOf = async (state: Promise<State>): Promise<string> => (await state).body.toString();

/** @param length of the body of each state */
function start({ bytesMax, length = 1 }: { readonly bytesMax?: number; readonly length?: number } = {}) {
  let now = 0;
  const built: string[] = [];
  const cache = createStateCache(() => now, bytesMax);
  const get = (id: string) =>
    cache.get(id, async () => {
      built.push(id);
      return toCachedState(String(built.length).padEnd(length));
    });
  return { cache, get, built, advance: (ms: number) => (now += ms) };
}

t.test('builds a state once a minute', async (t) => {
  const { get, advance } = start();
  t.equal(await textOf(get('a')), '1');
  advance(MINUTE - 1);
  t.equal(await textOf(get('a')), '1');
  advance(1);
  t.equal(await textOf(get('a')), '2');
});

t.test('callers at the same time share one build, and a failed one is not kept', async (t) => {
  const { cache, get, built } = start();
  await Promise.all([get('a'), get('a')]);
  t.strictSame(built, ['a']);
  const failing = cache.get('b', () => Promise.reject(new Error('no')));
  await t.rejects(failing, { message: 'no' });
  t.equal(await textOf(get('b')), '2');
});

t.test('a purge drops the state of a workspace, also while it is being built', async (t) => {
  const { cache, get, built } = start();
  await get('a');
  await get('b');
  const slow = Promise.withResolvers<State>();
  cache.purge('a');
  const asked = cache.get('a', () => slow.promise);
  cache.purge('a');
  slow.resolve(toCachedState('read before'));
  t.equal(await textOf(asked), 'read before', 'a caller that asked before the write may get the old state');
  t.equal(await textOf(cache.get('a', async () => toCachedState('fresh'))), 'fresh');
  await get('b');
  t.strictSame(built, ['a', 'b']);
});

t.test('drops the oldest when the states are too large together', async (t) => {
  const { cache, get, built } = start({ bytesMax: 100_000, length: 30_000 });
  for (const id of ['a', 'b', 'c', 'a', 'd', 'b']) await get(id);
  t.strictSame(built, ['a', 'b', 'c', 'd'], 'the oldest made room');
  await get('a');
  t.strictSame(built.slice(4), ['a']);
  cache.purge('d');
  for (const id of ['e', 'c', 'a']) await get(id);
  t.strictSame(built.slice(5), ['e'], 'dropped states free their bytes');
});
