import t from 'tap';
import { createStateCache, type State, toCachedState } from '#api/state-cache.ts';

const MINUTES = 60_000;

async function textOf(state: Promise<State>): Promise<string> {
  return (await state).body.toString();
}

function counting() {
  let builds = 0;
  return {
    build: async (): Promise<State> => {
      builds += 1;
      return toCachedState(`build ${builds}`);
    },
    get builds() {
      return builds;
    },
  };
}

t.test('a state is built once in five minutes', async (t) => {
  let now = 0;
  const cache = createStateCache({ clock: () => now });
  const source = counting();
  t.equal(await textOf(cache.get('a', source.build)), 'build 1');
  now = 5 * MINUTES - 1;
  t.equal(await textOf(cache.get('a', source.build)), 'build 1');
  now = 5 * MINUTES;
  t.equal(await textOf(cache.get('a', source.build)), 'build 2');
});

t.test('callers at the same time share one build', async (t) => {
  const cache = createStateCache({ clock: () => 0 });
  const source = counting();
  await Promise.all([cache.get('a', source.build), cache.get('a', source.build)]);
  t.equal(source.builds, 1);
});

t.test('a purge during a build keeps its result out', async (t) => {
  const cache = createStateCache({ clock: () => 0 });
  let finish: (state: State) => void = () => {};
  const slow = cache.get('a', () => new Promise<State>((resolve) => (finish = resolve)));
  cache.purge({ workspaceId: 'a', environmentId: 'b' });
  finish(toCachedState('stale'));
  t.equal(await textOf(slow), 'stale', 'whoever asked before the write may get the old state');
  t.equal(await textOf(cache.get('a', async () => toCachedState('fresh'))), 'fresh');
});

t.test('a purge takes both ids of a workspace', async (t) => {
  const cache = createStateCache({ clock: () => 0 });
  const source = counting();
  await cache.get('a', source.build);
  await cache.get('b', source.build);
  await cache.get('c', source.build);
  cache.purge({ workspaceId: 'a', environmentId: 'b' });
  await cache.get('a', source.build);
  await cache.get('b', source.build);
  await cache.get('c', source.build);
  t.equal(source.builds, 5);
});

t.test('a failure is not kept', async (t) => {
  const cache = createStateCache({ clock: () => 0 });
  await t.rejects(
    cache.get('a', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.equal(await textOf(cache.get('a', async () => toCachedState('yes'))), 'yes');
});

t.test('the oldest goes when the cache is full', async (t) => {
  const cache = createStateCache({ clock: () => 0, entriesMax: 2 });
  const source = counting();
  for (const id of ['a', 'b', 'c']) await cache.get(id, source.build);
  await cache.get('c', source.build);
  await cache.get('b', source.build);
  t.equal(source.builds, 3);
  await cache.get('a', source.build);
  t.equal(source.builds, 4);
});

t.test(
  'the oldest go when the states are too large together; one that is too large alone is not kept',
  async (t) => {
    const cache = createStateCache({ clock: () => 0, bytesMax: 100 });
    const builds: string[] = [];
    const get = (id: string, length: number) =>
      cache.get(id, async () => {
        builds.push(id);
        return toCachedState('x'.repeat(length));
      });
    await get('a', 40);
    await get('b', 40);
    await get('c', 40);
    await get('b', 40);
    await get('c', 40);
    t.strictSame(builds, ['a', 'b', 'c']);
    await get('a', 40);
    t.strictSame(builds, ['a', 'b', 'c', 'a'], 'it had to go');
    await get('d', 101);
    await get('d', 101);
    t.strictSame(builds.slice(4), ['d', 'd']);
    cache.purge({ workspaceId: 'a', environmentId: 'b' });
    for (const id of ['e', 'f']) await get(id, 50);
    await get('e', 50);
    t.strictSame(builds.slice(6), ['e', 'f'], 'what was taken is given back');
  },
);
