import t from 'tap';
import { createStateCache } from '#api/state-cache.ts';

const MINUTES = 60_000;

function counting() {
  let builds = 0;
  return {
    build: async (): Promise<string> => {
      builds += 1;
      return `build ${builds}`;
    },
    get builds() {
      return builds;
    },
  };
}

t.test('a state is built once in five minutes', async (t) => {
  let now = 0;
  const cache = createStateCache(() => now);
  const source = counting();
  t.equal(await cache.get('a', source.build), 'build 1');
  now = 5 * MINUTES - 1;
  t.equal(await cache.get('a', source.build), 'build 1');
  now = 5 * MINUTES;
  t.equal(await cache.get('a', source.build), 'build 2');
});

t.test('callers at the same time share one build', async (t) => {
  const cache = createStateCache(() => 0);
  const source = counting();
  await Promise.all([cache.get('a', source.build), cache.get('a', source.build)]);
  t.equal(source.builds, 1);
});

t.test('a purge during a build keeps its result out', async (t) => {
  const cache = createStateCache(() => 0);
  let finish: (state: string) => void = () => {};
  const slow = cache.get('a', () => new Promise<string>((resolve) => (finish = resolve)));
  cache.purge({ workspaceId: 'a', environmentId: 'b' });
  finish('stale');
  t.equal(await slow, 'stale', 'whoever asked before the write may get the old state');
  t.equal(await cache.get('a', async () => 'fresh'), 'fresh');
});

t.test('a purge takes both ids of a workspace', async (t) => {
  const cache = createStateCache(() => 0);
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
  const cache = createStateCache(() => 0);
  await t.rejects(
    cache.get('a', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.equal(await cache.get('a', async () => 'yes'), 'yes');
});

t.test('the oldest goes when the cache is full', async (t) => {
  const cache = createStateCache(() => 0, 2);
  const source = counting();
  for (const id of ['a', 'b', 'c']) await cache.get(id, source.build);
  await cache.get('c', source.build);
  await cache.get('b', source.build);
  t.equal(source.builds, 3);
  await cache.get('a', source.build);
  t.equal(source.builds, 4);
});
