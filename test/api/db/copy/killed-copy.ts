/** A program that copies a database as the command does, and kills itself after that many rows: FROM TO ROWS */
import { copyDatabase } from '#api/db/copy/copy.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';

const [from = '', to = '', rows = ''] = process.argv.slice(2);
const [source, target] = [from, to].map((url) => parseDatabaseUrl(url, process.cwd()));
if (source?.kind !== 'file' || target?.kind !== 'postgres') throw new Error('Give a file and a server');
await copyDatabase({
  path: source.path,
  to: target,
  onRows(done) {
    if (done >= Number(rows)) process.kill(process.pid, 'SIGKILL');
  },
});
