/** The gateway counts or refuses each value that PHP, Rack or Python reads, however the name is spelled. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { FIELD, mustBeCounted, oddQueries } from '#test/support/odd-names.ts';

/** Each program reads a query from each line, and writes what it found as one line of JSON. */
const PARSERS = {
  PHP: ['php', 'names.php'],
  Rack: ['ruby', 'names.rb'],
  Python: ['python3', 'names.py'],
} as const;

for (const [name, [program, file]] of Object.entries(PARSERS)) {
  t.test(`counts or refuses what ${name} reads`, async (t) => {
    const queries = oddQueries(30_000);
    const { status, stdout, stderr } = spawnSync(program, [join(import.meta.dirname, file), FIELD], {
      input: `${queries.join('\n')}\n`,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    t.equal(status, 0, stderr);
    const replies = stdout.trimEnd().split('\n');
    t.equal(replies.length, queries.length);
    let found = 0;
    for (const [i, query] of queries.entries()) {
      const read: unknown = JSON.parse(replies[i] ?? '');
      if (typeof read === 'string' || (Array.isArray(read) && read.length > 0)) found++;
      mustBeCounted(query, read, name);
    }
    t.ok(found > 1000, `${found} queries had the field`);
  });
}
