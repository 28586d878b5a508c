/**
 * `files copy`: copies uploaded files from a folder into a bucket, or back. The table `files` lists them, because a folder
 * has only the hashes of their keys. The rows do not change, because a key is the same in every store.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { createSigner } from '#api/auth/signer.ts';
import { readConfig } from '#api/config.ts';
import type { Database } from '#api/db/schema.ts';
import { presentationOf } from '#api/resources/storage/file-types.ts';
import { extensionOf } from '#api/storage/key.ts';
import { openStorage } from '#api/storage/open.ts';
import type { Storage } from '#api/storage/storage.ts';
import type { Given } from '#shared/cli/command.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { type CommandContext, command, DATABASE, databaseAt, withDatabase } from './command.ts';

const BUCKET = 's3://';
/** Number of files at a time. Each is in memory meanwhile, at most 10 MiB. */
const PARALLEL = 8;

const OPTIONS = {
  from: { isRequired: true, describe: 'A folder, or s3://BUCKET' },
  to: { isRequired: true, describe: 'A folder, or s3://BUCKET; the S3_… variables set the access' },
  database: { ...DATABASE, describe: 'The database that knows the files' },
} as const;

export const COPY_FILES = command({
  describe: 'Copies all files that the database knows into another store',
  options: OPTIONS,
  examples: [
    ['$0 files copy --from ./data/uploads --to s3://uploads', 'Again: copies only files that are not there'],
  ],
  run: copy,
});

async function copy(options: Given<typeof OPTIONS>, context: CommandContext): Promise<ExitCode> {
  const { terminal, cwd } = context;
  // A missing folder must not be created and then look empty.
  if (!options.from.startsWith(BUCKET) && !existsSync(resolve(cwd, options.from)))
    throw new CommandError(`--from: there is no folder ${options.from}`, EXIT.unreachable);
  const from = await openStore('--from', options.from, context);
  const to = await openStore('--to', options.to, context);
  try {
    await from.check();
    await to.check();
    const sum = await withDatabase(databaseAt('--database', options.database, context), (db) =>
      copyFiles(db, from, to, (key) => terminal.error(`${key} is missing, although the database has it`)),
    );
    if (options.json) terminal.json(sum);
    else terminal.table(['files', 'count'], Object.entries(sum));
    return sum.missing === 0 ? EXIT.ok : EXIT.no;
  } finally {
    await from.close();
    await to.close();
  }
}

async function openStore(option: string, value: string, context: CommandContext): Promise<Storage> {
  const { env, cwd, clock } = context;
  const [, bucket] = /^s3:\/\/([^/]+)\/?$/.exec(value) ?? [];
  if (bucket === undefined && value.startsWith(BUCKET))
    throw new CommandError(`${option}: give a folder such as ./data/uploads, or s3://BUCKET`, EXIT.usage);
  // This command grants no uploads, so the address and the signer of a grant do not matter.
  const parts = { publicUrl: '', signer: createSigner(randomBytes(32)), clock, random: randomBytes };
  if (bucket === undefined)
    return openStorage({
      location: { kind: 'disk', path: resolve(cwd, value) },
      credentials: null,
      ...parts,
    });
  const { config, secrets } = readConfig({ ...env, S3_BUCKET_NAME: bucket }, cwd);
  return openStorage({ location: config.storage, credentials: secrets.s3, ...parts });
}

/** Each file appears whole or not at all. One that exists with the same size is skipped. */
async function copyFiles(db: Database, from: Storage, to: Storage, onMissing: (key: string) => void) {
  const sum = { copied: 0, there: 0, missing: 0 };
  for (let last = ''; ; ) {
    const rows = await db
      .selectFrom('files')
      .select(['key', 'size'])
      .where('key', '>', last)
      .where('removedAt', 'is', null)
      .orderBy('key')
      .limit(PARALLEL)
      .execute();
    const found = await Promise.all(rows.map(({ key }) => copyFile(from, to, key)));
    for (const [at, { key, size }] of rows.entries()) {
      const how = found[at] ?? 'missing';
      // A grant that nobody has used yet has no file.
      if (how === 'missing' && size === null) continue;
      sum[how] += 1;
      if (how === 'missing') onMissing(key);
    }
    const end = rows.at(-1);
    if (end === undefined) return sum;
    last = end.key;
  }
}

async function copyFile(from: Storage, to: Storage, key: string): Promise<'copied' | 'there' | 'missing'> {
  const source = await from.find(key);
  if (source === null) return 'missing';
  if (source.size === (await to.find(key))?.size) return 'there';
  const range = { first: 0, last: source.size - 1 };
  const stream = source.size === 0 ? Readable.from([]) : await from.read(key, source, range);
  if (stream === null) return 'missing';
  const content = Buffer.concat(await stream.toArray());
  await to.put({ key, contentType: presentationOf(extensionOf(key)).contentType }, content);
  return 'copied';
}
