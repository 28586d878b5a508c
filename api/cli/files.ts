/** `files`: copies uploaded files from a folder into a bucket, or back. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSigner } from '#api/auth/signer.ts';
import { readConfig } from '#api/config.ts';
import { presentationOf } from '#api/resources/storage/file-types.ts';
import { copyFiles, countFiles, type FilesCopied } from '#api/storage/copy/files.ts';
import { extensionOf } from '#api/storage/key.ts';
import { openStorage } from '#api/storage/open.ts';
import type { Storage } from '#api/storage/storage.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import { Progress } from '#shared/cli/progress.ts';
import { type AddCommand, type CommandContext, databaseAt, databaseUrl } from './command.ts';
import { openExisting } from './existing-database.ts';

interface FilesArguments extends GlobalOptions {
  readonly from: string;
  readonly to: string;
  readonly database: string;
}

const BUCKET = 's3://';

export const addFiles: AddCommand = (program, context) =>
  program.command('files', 'Copies uploaded files', (command) =>
    command
      .command(
        'copy',
        'Copies all files that the database knows into another store',
        (copy) =>
          copy
            .option('from', { type: 'string', demandOption: true, describe: 'A folder, or s3://BUCKET' })
            .option('to', { type: 'string', demandOption: true, describe: 'A folder, or s3://BUCKET' })
            .option('database', {
              type: 'string',
              default: databaseUrl(context),
              defaultDescription: 'DATABASE_URL',
              describe: 'The database that knows the files; that of DATABASE_URL unless given',
            })
            .epilogue('The S3_… variables set the access to a bucket, as for the API.')
            .example(
              ...copyable(
                '$0 files copy --from ./data/uploads --to s3://uploads',
                'Resume: copies only missing files',
              ),
            ),
        (options) => context.run(() => copy(options, context)),
      )
      .demandCommand(1, 'Name a command: copy.'),
  );

async function copy(options: FilesArguments, context: CommandContext): Promise<ExitCode> {
  if (options.from.startsWith(BUCKET) && options.to.startsWith(BUCKET)) {
    throw new CommandError(
      'both are buckets, where files have the same keys: use a tool of S3, such as "aws s3 sync"',
      EXIT.usage,
    );
  }
  const folder = resolve(context.cwd, options.from);
  if (!options.from.startsWith(BUCKET) && !existsSync(folder)) {
    throw new CommandError(
      `${folder} is not a folder of uploads; --from names one, or s3://BUCKET`,
      EXIT.unreachable,
    );
  }
  const location = databaseAt('--database', options.database, context);
  const db = await openExisting(location);
  const opened: { close(): Promise<void> }[] = [{ close: () => db.destroy() }];
  try {
    const from = await openStore('--from', options.from, context);
    opened.push(from);
    const to = await openStore('--to', options.to, context);
    opened.push(to);
    // A missing folder must not be created and then look empty.
    if (options.from.startsWith(BUCKET)) await from.check();
    await to.check();
    const { bytes } = await countFiles(db);
    const progress = new Progress(context.terminal, context.clock);
    let done = 0;
    const result = await copyFiles({
      db,
      from,
      to,
      contentTypeOf: (key) => presentationOf(extensionOf(key)).contentType,
      onFile: (size) => {
        done += size;
        progress.at(done, bytes);
      },
    }).finally(() => progress.end());
    report(result, options, context);
    return result.problems === 0 ? EXIT.ok : EXIT.no;
  } finally {
    for (const one of opened.toReversed()) await one.close();
  }
}

async function openStore(option: string, value: string, context: CommandContext): Promise<Storage> {
  const { env, cwd, clock } = context;
  // This command grants no uploads, so the address and the signer of a grant do not matter.
  const parts = { publicUrl: '', signer: createSigner(randomBytes(32)), clock, random: randomBytes };
  if (!value.startsWith(BUCKET)) {
    return openStorage({
      location: { kind: 'disk', path: resolve(cwd, value) },
      credentials: null,
      ...parts,
    });
  }
  const bucket = value.slice(BUCKET.length).replace(/\/$/, '');
  if (bucket === '' || bucket.includes('/')) {
    throw new CommandError(`${option}: give a folder such as ./data/uploads, or s3://BUCKET`, EXIT.usage);
  }
  const { config, secrets } = readConfig({ ...env, S3_BUCKET_NAME: bucket }, cwd);
  return openStorage({ location: config.storage, credentials: secrets.s3, ...parts });
}

const PROBLEMS = {
  missing: 'is missing, although the database has it',
  size: 'differs in size from the database; it was copied unchanged',
} as const;

function report(result: FilesCopied, { json }: GlobalOptions, { terminal }: CommandContext): void {
  if (json) {
    terminal.json(result);
    return;
  }
  terminal.table(
    ['files', 'count'],
    [
      ['copied', result.copied],
      ['bytes copied', result.copiedBytes],
      ['there already', result.same],
      ['granted, never uploaded', result.unused],
      ['problems', result.problems],
    ],
  );
  for (const { key, problem } of result.examples) terminal.error(`${key} ${PROBLEMS[problem]}`);
  const others = result.problems - result.examples.length;
  if (others > 0) terminal.error(`and ${others} more`);
}
