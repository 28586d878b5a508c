/**
 * A program that copies a database as the command does, and kills itself after that many rows: node killed-copy.ts FROM
 * TO ROWS
 */
import { copyRows } from '#api/db/copy/copy.ts';
import { openSnapshot, openTarget } from '#api/db/copy/ends.ts';
import { readShape } from '#api/db/copy/shape.ts';
import { describeLocation, parseDatabaseUrl } from '#api/db/location.ts';

const [from = '', to = '', rows = ''] = process.argv.slice(2);
const location = parseDatabaseUrl(from, process.cwd());
const shape = await readShape();
const source = await openSnapshot(location, { shape, isExclusive: true, what: 'the source' });
const target = await openTarget(parseDatabaseUrl(to, process.cwd()));
let done = 0;
await copyRows({
  shape,
  from: source.db,
  to: target.db,
  source: describeLocation(location),
  isRestart: false,
  refusesNul: target.refusesNul,
  isIndexedLast: target.isIndexedLast,
  onRows(count) {
    done += count;
    if (done >= Number(rows)) process.kill(process.pid, 'SIGKILL');
  },
});
