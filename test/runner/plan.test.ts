/** Tests in which process, in which order and on which databases the test files run. */
import { globSync } from 'node:fs';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import {
  databasesOf,
  groupsOf,
  importanceOf,
  isInLongSuite,
  programsOf,
  reaches,
  SYSTEM,
  SYSTEM_FOLDERS,
  testQueue,
} from './plan.ts';
import { installCommand } from './servers.ts';

const light = [
  'test/api/values/ids.test.ts',
  'test/api/http/names.test.ts',
  'test/gateway/policy/route.test.ts',
  'test/api/wiring/config.test.ts',
];
const starting = 'test/api/wiring/first-start.test.ts';
const long = 'test/api/http/hostile.test.ts';
const system = 'test/system/crashes/gateway-workers.test.ts';

t.test('files of one area share a process; slow files and those of test/system have their own', async (t) => {
  t.strictSame(groupsOf([...light, system, starting, long], [long]), [
    [long],
    [
      'test/api/values/ids.test.ts',
      'test/api/http/names.test.ts',
      'test/api/wiring/config.test.ts',
      starting,
    ],
    [system],
    [light[2]],
  ]);
  const alike = (file: string): number[] => groupsOf(Array(40).fill(file), []).map(({ length }) => length);
  t.strictSame(alike('test/api/values/ids.test.ts'), [36, 4]);
  t.strictSame(alike(starting), [9, 9, 9, 9, 4], 'files that start programs');
});

t.test('code that differs between the databases is tested on both', async (t) => {
  t.ok(reaches(starting, 'test/support/process.ts'));
  t.notOk(reaches('test/api/values/ids.test.ts', 'test/support/process.ts'));
  for (const [file, databases] of [
    [long, ['sqlite', 'postgres']],
    ['test/api/parallel-writers/limits.test.ts', ['sqlite', 'postgres']],
    ['test/system/crashes/one-of-two-apis.test.ts', ['sqlite', 'postgres']],
    ['test/gateway/request/reading/identify.test.ts', ['sqlite']],
    ['test/api/wiring/config.test.ts', ['sqlite']],
    ['test/api/db/busy.test.ts', ['sqlite']],
    ['test/system/postgres/crash.test.ts', ['postgres']],
  ] as const)
    t.strictSame(databasesOf(file), databases, file);
});

t.test('random tests of the quick suite run again in the longer one, with a new seed', async (t) => {
  t.ok(isInLongSuite('test/gateway/policy/match.test.ts', 'sqlite'));
  t.ok(
    isInLongSuite('test/gateway/workbench/replay/equality.test.ts', 'sqlite'),
    'also if a helper is random',
  );
  t.notOk(isInLongSuite('test/gateway/request/reading/identify.test.ts', 'sqlite'));
  t.strictSame([isInLongSuite(long, 'sqlite'), isInLongSuite(long, 'postgres')], [false, true]);
});

t.test('every folder of test/system has its place in the order, and lists its requirements', async (t) => {
  const folders = globSync(`${SYSTEM}*`, { cwd: projectRoot }).map((folder) => folder.slice(SYSTEM.length));
  t.strictSame(folders.sort(), Object.keys(SYSTEM_FOLDERS).sort());
  const postgresRun = importanceOf(long, 'postgres');
  t.ok(importanceOf(system, 'sqlite') < postgresRun);
  t.ok(postgresRun < importanceOf('test/system/browsers/pages.test.ts', 'sqlite'));
  t.strictSame(programsOf(long, 'sqlite'), ['redis-server']);
  t.ok(programsOf(long, 'postgres').includes('initdb'));
  t.ok(programsOf('test/system/browsers/pages.test.ts', 'sqlite').includes('chromium'));
});

t.test(
  'each file of test/system/neighbours needs its own programs, or files of their packages',
  async (t) => {
    const needed = (name: string) => programsOf(`${SYSTEM}neighbours/${name}.test.ts`, 'sqlite');
    t.strictSame(needed('restic'), ['redis-server', 'rclone', 'restic']);
    t.strictSame(needed('node-red'), ['redis-server', 'node-red']);
    t.match(installCommand(['socket.io']), /^npm install socket\.io@[\d.]+ socket\.io-client@[\d.]+$/);
  },
);

t.test('only files that need a program wait for its installation', async (t) => {
  const task = (name: string, programs: Parameters<typeof testQueue>[1]) => ({
    files: [name],
    database: 'sqlite' as const,
    programs,
  });
  const installed = Promise.withResolvers<void>();
  const queue = testQueue(
    [task('a', ['chromium']), task('b', []), task('c', ['nginx']), task('d', ['initdb'])],
    ['chromium', 'nginx'],
    installed.promise,
  );
  const names = async (count: number) => {
    const taken = [];
    for (let i = 0; i < count; i++) taken.push((await queue.next())?.files[0]);
    return taken;
  };
  t.strictSame(await names(2), ['b', 'd']);
  const rest = names(3);
  installed.resolve();
  t.strictSame(await rest, ['a', 'c', undefined]);
});
