/** Imports in api/ point one way; see test/support/imports.ts. */
import t from 'tap';
import { longestChain, loopThrough, readProgram } from '#test/support/imports.ts';

const { files, fileGraph, folderGraph, importsOf, holdersOf } = readProgram('api');

t.test('the graph has the imports of the program', async (t) => {
  t.ok(files.length > 150);
  t.ok(folderGraph.get('api/app.ts')?.has('api/surfaces'));
  t.ok(folderGraph.get('api/resources/responses')?.has('api/resources/surveys'), 'type-only imports count');
});

t.test('no files and no folders import each other, directly or by way of others', async (t) => {
  for (const graph of [fileGraph, folderGraph])
    for (const node of graph.keys()) t.equal(loopThrough(graph, node), null, node);
});

t.test('at most 14 folders lie on one chain of imports', async (t) => {
  const chain = longestChain(folderGraph, 'api/main.ts');
  t.ok(chain.length <= 14, chain.join(' -> '));
});

t.test('only routes and their wiring import the context', async (t) => {
  const importers = files.filter((file) => importsOf(file).includes('api/context.ts'));
  t.strictSame(
    importers.filter(
      (file) => !/^api\/((resources|surfaces|jobs)\/|(app|main|bootstrap|open-context)\.ts$)/.test(file),
    ),
    [],
  );
});

t.test('few files import each dependency', async (t) => {
  const holders: Readonly<Record<string, readonly string[]>> = {
    nodemailer: ['api/mail/smtp.ts'],
    ioredis: ['api/limits/redis-counters.ts'],
    'rate-limiter-flexible': ['api/limits/redis-counters.ts'],
    pg: ['api/db/postgres.ts'],
    '@aws-sdk/client-s3': ['api/storage/s3.ts'],
  };
  for (const [name, expected] of Object.entries(holders)) {
    t.strictSame(holdersOf(name), expected, name);
  }
});
