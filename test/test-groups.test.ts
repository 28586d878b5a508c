/** Which test files share a process, and in which order the processes begin. */
import t from 'tap';
import { databasesOf } from './support/databases-of-files.ts';
import { groupsOf } from './support/test-groups.ts';
import { reaches } from './support/test-imports.ts';

const light = [
  'test/api/ids.test.ts',
  'test/api/nul.test.ts',
  'test/gateway/identify.test.ts',
  'test/api/config.test.ts',
];
const starting = 'test/api/first-start.test.ts';
const long = 'test/api/hostile.test.ts';

t.test(
  'files of one area share a process; those that take long have their own, and begin first',
  async (t) => {
    const groups = groupsOf([...light, starting, long], [long]);
    t.strictSame(
      groups.map(({ files }) => files),
      [
        [long],
        ['test/api/ids.test.ts', 'test/api/nul.test.ts', 'test/api/config.test.ts', starting],
        [light[2]],
      ],
    );
  },
);

t.test('fewer files that start processes share one', async (t) => {
  const alike = (file: string): number[] =>
    groupsOf(Array(40).fill(file), []).map(({ files }) => files.length);
  t.strictSame(alike('test/api/ids.test.ts'), [36, 4]);
  t.strictSame(alike(starting), [9, 9, 9, 9, 4]);
});

t.test('what a file starts and stores is known by what it imports', async (t) => {
  t.ok(reaches(starting, 'test/support/process.ts'));
  t.notOk(reaches('test/api/ids.test.ts', 'test/support/process.ts'));
  const both = ['sqlite', 'postgres'] as const;
  t.strictSame(databasesOf(long, both), both);
  t.strictSame(databasesOf('test/gateway/identify.test.ts', both), ['sqlite']);
  t.strictSame(databasesOf('test/api/db/busy.test.ts', both), ['sqlite']);
  t.strictSame(databasesOf('test/api/db/busy.test.ts', ['postgres']), []);
  t.strictSame(databasesOf('test/api/docs/openapi.test.ts', ['postgres']), ['postgres'], 'once, on any');
  t.strictSame(
    databasesOf('test/system/postgres/crash.test.ts', both),
    ['sqlite'],
    'once, whatever it is called',
  );
});
