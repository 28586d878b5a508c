/**
 * Imports in api/ point one way. A node of the graph is a folder or, on the top level, a file: the top level has both what
 * everybody may import (errors, ids) and what imports everybody (app, main).
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

const IMPORT = /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

const files = globSync('api/**/*.ts', { cwd: projectRoot }).sort();

function nodeOf(file: string): string {
  const folder = dirname(file);
  return folder === 'api' ? file : folder;
}

/** The files of api/ that a file imports, type-only imports included. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(projectRoot, file), 'utf8');
  return [...text.matchAll(IMPORT)].flatMap(([, from, bare, dynamic]) => {
    const specifier = from ?? bare ?? dynamic ?? '';
    const target = specifier.startsWith('#') ? specifier.slice(1) : join(dirname(file), specifier);
    const isOurs = specifier.startsWith('#api/') || specifier.startsWith('.');
    return isOurs && target.startsWith('api/') ? [target] : [];
  });
}

/** Node -> node -> one import line that leads there. */
const graph = new Map<string, Map<string, string>>();
for (const file of files) {
  const from = nodeOf(file);
  const edges = graph.get(from) ?? new Map<string, string>();
  graph.set(from, edges);
  for (const target of importsOf(file)) {
    const to = nodeOf(target);
    if (to !== from) edges.set(to, `${file} imports ${target}`);
  }
}

/** @returns the import lines of a way from one node back to it; null when there is none */
function cycleThrough(start: string): readonly string[] | null {
  const ways: { readonly node: string; readonly lines: readonly string[] }[] = [{ node: start, lines: [] }];
  const seen = new Set<string>();
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const [next, line] of graph.get(way.node) ?? []) {
      const lines = [...way.lines, line];
      if (next === start) return lines;
      if (!seen.has(next)) ways.push({ node: next, lines });
      seen.add(next);
    }
  }
  return null;
}

t.test('the graph is that of the program', async (t) => {
  t.ok(files.length > 150);
  t.ok(graph.get('api/app.ts')?.has('api/surfaces'));
  t.ok(graph.get('api/resources/responses')?.has('api/resources/surveys'), 'type-only imports count');
});

t.test('no two folders import each other, and no cycle is longer', async (t) => {
  for (const node of graph.keys()) t.strictSame(cycleThrough(node), null, node);
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
    const found = files.filter((file) =>
      readFileSync(join(projectRoot, file), 'utf8').includes(`from '${name}'`),
    );
    t.strictSame(found, expected, name);
  }
});
