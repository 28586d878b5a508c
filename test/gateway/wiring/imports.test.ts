/** Imports in gateway/ point one way; see test/support/imports.ts. */
import t from 'tap';
import { longestChain, loopThrough, readProgram } from '#test/support/imports.ts';

const { files, fileGraph, loadGraph, folderGraph, graphOf, importsOf, holdersOf } = readProgram('gateway');

/** A room is a folder with its content. */
const roomGraph = graphOf((file) => {
  const [, room = ''] = file.split('/');
  return room.endsWith('.ts') ? 'gateway' : room;
});

t.test('the graph has the imports of the program', async (t) => {
  t.ok(files.length > 150);
  t.ok(folderGraph.get('gateway/app.ts')?.has('gateway/listen'));
  t.ok(folderGraph.get('gateway/limiter')?.has('gateway/policy'), 'type-only imports count');
});

t.test('no files, folders or rooms import each other, directly or indirectly', async (t) => {
  for (const graph of [fileGraph, folderGraph, roomGraph])
    for (const node of graph.keys()) t.equal(loopThrough(graph, node), null, node);
});

t.test('fewer than 12 rooms lie on one chain of imports', async (t) => {
  const chain = longestChain(roomGraph, 'gateway');
  t.ok(chain.length < 12, chain.join(' -> '));
});

t.test('only the wiring lies at the top', async (t) => {
  const atTop = files.filter((file) => file.split('/').length === 2);
  const wiring = ['gateway/app.ts', 'gateway/config.ts', 'gateway/main.ts', 'gateway/parts.ts'];
  t.strictSame(atTop, wiring);
});

t.test('the limiter sees only what it needs of the policies', async (t) => {
  const limiter = files.filter((file) => file.startsWith('gateway/limiter/'));
  t.ok(limiter.includes('gateway/limiter/charge.ts'));
  const reached = new Set(limiter);
  for (const file of reached) for (const target of importsOf(file)) reached.add(target);
  t.ok(reached.has('gateway/policy/policy.ts'));
  const policyFile =
    /^gateway\/(policy\/(keys|file)\/|policy\/(policy-set|page-template|match|route)\.ts|reply\/)/;
  t.strictSame(
    [...reached].filter((file) => policyFile.test(file)),
    [],
  );
});

t.test('chains of imports are short', async (t) => {
  const lengthFrom = (file: string): number => longestChain(fileGraph, file).length;
  t.ok(lengthFrom('gateway/main.ts') < 23, longestChain(fileGraph, 'gateway/main.ts').join(' -> '));
  const loaded = longestChain(loadGraph, 'gateway/main.ts');
  t.ok(loaded.length > 5 && loaded.length <= 14, loaded.join(' -> '));
  for (const file of files)
    if (file.startsWith('gateway/limiter/')) t.ok(lengthFrom(file) < 14, `${file}: ${lengthFrom(file)}`);
});

t.test('a request uses nothing of the workbench and of operate/', async (t) => {
  const isOnTheWay =
    /^gateway\/(http|identity|policy|limiter|store|bounds|proxy|reply|request|bans|refusals)\//;
  const isElsewhere = /^gateway\/(workbench|cli|process|operate)\//;
  const wrong = files
    .filter((file) => isOnTheWay.test(file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => isElsewhere.test(target))
        .map((target) => `${file} imports ${target}`),
    );
  t.strictSame(wrong, []);
});

t.test('few files import each dependency', async (t) => {
  t.strictSame(holdersOf('ioredis'), ['gateway/store/node.ts']);
  const outside = (name: string, folder: RegExp) => holdersOf(name).filter((file) => !folder.test(file));
  t.strictSame(outside('fastify', /^gateway\/(operate\/admin\/|main\.ts$)/), []);
  t.strictSame(outside('yaml', /^gateway\/(policy|workbench\/import)\//), []);
});
