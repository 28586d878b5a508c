/** Holds refusals.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { difference } from '#test/conversations/document.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { apiCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const SERVER = 'postgres://floodgate:secret@127.0.0.1:9/floodgate';
const cwd = temporaryFolder(t);
const db = openDatabase({ kind: 'file', path: join(cwd, 'full') });
await migrate(db);
await db.destroy();
writeFileSync(join(cwd, 'empty'), '');
mkdirSync(join(cwd, 'uploads'));

for (const [call = '', code, message = ''] of casesUnder(join(import.meta.dirname, 'refusals.md'), 'Calls'))
  t.test(call, async (t) => {
    const found = await apiCommand(call.replaceAll('SERVER', SERVER).split(' '), { cwd });
    t.equal(found.code, Number(code), found.stderr);
    t.equal(difference(message, found.stderr.trimEnd(), new Map()), null);
    t.notMatch(found.stderr, 'secret');
    t.equal(found.stdout, '');
  });
