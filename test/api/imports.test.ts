/** Imports in api/ point one way; see test/support/imports.ts. */
import t from 'tap';
import { loopThrough, readProgram } from '#test/support/imports.ts';

const { files, fileGraph, folderGraph, importsOf, holdersOf } = readProgram('api');

t.test('the graph is that of the program', async (t) => {
  t.ok(files.length > 150);
  t.ok(folderGraph.get('api/app.ts')?.has('api/surfaces'));
  t.ok(folderGraph.get('api/resources/responses')?.has('api/resources/surveys'), 'type-only imports count');
});

t.test('no files and no folders import each other, directly or by way of others', async (t) => {
  for (const graph of [fileGraph, folderGraph])
    for (const node of graph.keys()) t.equal(loopThrough(graph, node), null, node);
});

t.test('no chain of imports is longer than 14 nodes, so that few files lie below each', async (t) => {
  const longest = new Map<string, readonly string[]>();
  const longestFrom = (node: string): readonly string[] => {
    const known = longest.get(node);
    if (known !== undefined) return known;
    const below = [...(graph.get(node)?.keys() ?? [])].map(longestFrom);
    const chain = [node, ...below.reduce((one, other) => (other.length > one.length ? other : one), [])];
    longest.set(node, chain);
    return chain;
  };
  for (const node of graph.keys()) t.ok(longestFrom(node).length <= 14, longestFrom(node).join(' -> '));
});

t.test('the context is for routes and for what wires them together', async (t) => {
  const importers = files.filter((file) => importsOf(file).includes('api/context.ts'));
  t.strictSame(
    importers.filter((file) => !/^api\/((resources|surfaces|jobs)\/|(app|main|bootstrap)\.ts$)/.test(file)),
    [],
  );
});

t.test('few files know each dependency', async (t) => {
  const holders: Readonly<Record<string, readonly string[]>> = {
    undici: ['api/events/sender.ts'],
    nodemailer: ['api/mail/smtp.ts'],
    ioredis: ['api/limits/redis-counters.ts'],
    'rate-limiter-flexible': ['api/limits/redis-counters.ts'],
    'better-sqlite3': ['api/db/sqlite-driver.ts', 'api/db/sqlite-snapshot.ts', 'api/db/sqlite.ts'],
    pg: ['api/db/postgres-driver.ts'],
    '@aws-sdk/client-s3': ['api/storage/s3.ts'],
  };
  for (const [name, expected] of Object.entries(holders)) {
    t.strictSame(holdersOf(name), expected, name);
  }
});
