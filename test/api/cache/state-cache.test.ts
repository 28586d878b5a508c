import t from 'tap';
import { type State, toCachedState, windowOf } from '#api/cache/state-cache.ts';
import { createWorkspaceCache } from '#api/cache/workspace-cache.ts';

const MINUTES = 60_000;

async function textOf(state: Promise<State>): Promise<string> {
  return (await state).body.toString();
}

/** The window of this state does not end. */
const lasting = (text: string): State => toCachedState(text, Number.POSITIVE_INFINITY);

function counting() {
  let builds = 0;
  return {
    build: async (): Promise<State> => {
      builds += 1;
      return lasting(`build ${builds}`);
    },
    get builds() {
      return builds;
    },
  };
}

t.test('builds a state once in a minute', async (t) => {
  let now = 0;
  const cache = createWorkspaceCache<State>({ clock: () => now });
  const source = counting();
  t.equal(await textOf(cache.get('a', source.build)), 'build 1');
  now = MINUTES - 1;
  t.equal(await textOf(cache.get('a', source.build)), 'build 1');
  now = MINUTES;
  t.equal(await textOf(cache.get('a', source.build)), 'build 2');
});

t.test('concurrent callers share one build', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0 });
  const source = counting();
  await Promise.all([cache.get('a', source.build), cache.get('a', source.build)]);
  t.equal(source.builds, 1);
});

t.test('does not cache a build during which the workspace was purged', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0 });
  let finish: (state: State) => void = () => {};
  const slow = cache.get('a', () => new Promise<State>((resolve) => (finish = resolve)));
  cache.purge('a');
  finish(lasting('stale'));
  t.equal(await textOf(slow), 'stale', 'a caller that asked before the write may get the old state');
  t.equal(await textOf(cache.get('a', async () => lasting('fresh'))), 'fresh');
});

t.test('a purge drops the state of one workspace', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0 });
  const source = counting();
  await cache.get('a', source.build);
  await cache.get('b', source.build);
  cache.purge('a');
  await cache.get('a', source.build);
  await cache.get('b', source.build);
  t.equal(source.builds, 3);
});

t.test('does not cache a failure', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0 });
  await t.rejects(
    cache.get('a', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.equal(await textOf(cache.get('a', async () => lasting('yes'))), 'yes');
});

t.test('drops the oldest when the cache is full', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0, entriesMax: 2 });
  const source = counting();
  for (const id of ['a', 'b', 'c']) await cache.get(id, source.build);
  await cache.get('c', source.build);
  await cache.get('b', source.build);
  t.equal(source.builds, 3);
  await cache.get('a', source.build);
  t.equal(source.builds, 4);
});

t.test('drops the oldest when the states are too large together', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0, bytesMax: 100 });
  const builds: string[] = [];
  const get = (id: string) =>
    cache.get(id, async () => {
      builds.push(id);
      return lasting('x'.repeat(10));
    });
  const first = [...'abcdefghij'];
  for (const id of [...first, ...first, 'k', ...first.slice(1)]) await get(id);
  t.strictSame(builds, [...first, 'k']);
  await get('a');
  t.strictSame(builds.slice(11), ['a'], 'the oldest state was dropped');
  cache.purge('k');
  cache.purge('a');
  for (const id of ['l', 'm', 'c']) await get(id);
  t.strictSame(builds.slice(12), ['l', 'm'], 'dropped states free their bytes');
});

t.test('builds a state again at the end of its window', async (t) => {
  let now = 0;
  const cache = createWorkspaceCache<State>({ clock: () => now });
  let builds = 0;
  const build = async (): Promise<State> => {
    builds += 1;
    return toCachedState(`build ${builds}`, MINUTES / 2);
  };
  await cache.get('a', build);
  now = MINUTES / 4;
  t.equal(await textOf(cache.get('a', build)), 'build 1');
  now = MINUTES / 2;
  t.equal(await textOf(cache.get('a', build)), 'build 2');
});

t.test('each workspace has its own windows of five minutes', async (t) => {
  const { beginsAt, endsAt } = windowOf('ws1', 1_000_000_000);
  t.equal(endsAt - beginsAt, 5 * MINUTES);
  t.ok(beginsAt <= 1_000_000_000 && 1_000_000_000 < endsAt);
  t.strictSame(windowOf('ws1', beginsAt), { beginsAt, endsAt });
  t.strictSame(windowOf('ws1', endsAt - 1), { beginsAt, endsAt });
  t.equal(windowOf('ws1', endsAt).beginsAt, endsAt);
  t.not(windowOf('ws2', beginsAt).beginsAt, beginsAt, 'the windows of workspaces begin at different times');
});

t.test('never keeps an entry of more than a tenth of the cache, which would drop many others', async (t) => {
  const cache = createWorkspaceCache<State>({ clock: () => 0, bytesMax: 100 });
  let builds = 0;
  const build = (bytes: number) => async () => {
    builds += 1;
    return lasting('x'.repeat(bytes));
  };
  await cache.get('small', build(10));
  await Promise.all([cache.get('large', build(11)), cache.get('large', build(11))]);
  t.equal(builds, 2, 'callers at the same time share one build');
  await cache.get('large', build(11));
  await cache.get('small', build(10));
  t.equal(builds, 3, 'and the others stay');
});
