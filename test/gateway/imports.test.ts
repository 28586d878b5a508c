/** Imports in gateway/ point one way; see test/support/imports.ts. */
import t from 'tap';
import { longestChain, loopThrough, readProgram } from '#test/support/imports.ts';

const { files, fileGraph, folderGraph, graphOf, importsOf, holdersOf } = readProgram('gateway');

/** A room is a folder with its content. operate/ has several rooms, because a request uses only bans and decisions. */
const roomGraph = graphOf((file) => {
  const [, room = '', inner = ''] = file.split('/');
  if (room.endsWith('.ts')) return 'gateway';
  return room === 'operate' ? `operate/${inner}` : room;
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
  t.strictSame(atTop, ['gateway/app.ts', 'gateway/config.ts', 'gateway/main.ts']);
});

t.test('a request uses nothing of the workbench, and of operate/ only bans and decisions', async (t) => {
  const isOnTheWay = /^gateway\/(http|identity|policy|limiter|store|bounds|proxy|reply|request)\//;
  const isElsewhere = /^gateway\/(workbench|cli|library|process|operate\/(admin|doctor))\//;
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
