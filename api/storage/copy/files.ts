/**
 * Copies uploaded files from one store to another. The table `files` lists them, because a folder has only the hashes
 * of their keys. Each file appears whole or not at all. Files that already exist with the same size are skipped, so an
 * interrupted copy can be resumed. The rows do not change, because a key is the same in every store.
 */
import type { Database } from '#api/db/schema.ts';
import { findGrant } from '../files.ts';
import type { OpenObject, Storage } from '../storage.ts';

interface CopyFilesOptions {
  readonly db: Database;
  readonly from: Storage;
  readonly to: Storage;
  readonly contentTypeOf: (key: string) => string;
  /** Called with the size of each file that is done. */
  readonly onFile: (bytes: number) => void;
}

type FileProblem =
  /** The file is in the database, but not in the store. */
  | 'missing'
  /** The size differs from that in the database. The file was copied nevertheless. */
  | 'size';

export interface FilesCopied {
  /** Number of files that this run has copied. */
  readonly copied: number;
  readonly copiedBytes: number;
  /** Number of files that already existed in the target. */
  readonly same: number;
  /** Number of unused grants. */
  readonly unused: number;
  readonly problems: number;
  /** Details of the first problems. */
  readonly examples: readonly { readonly key: string; readonly problem: FileProblem }[];
}

const EXAMPLES_MAX = 20;
const ROWS_AT_ONCE = 500;
/** Number of files at a time. Each is in memory meanwhile, at most 10 MiB. */
const PARALLEL = 8;

interface FileRow {
  readonly key: string;
  readonly size: number | null;
  readonly storedAt: string | null;
}

/** Copies all files. @throws StorageUnavailable */
export async function copyFiles(options: CopyFilesOptions): Promise<FilesCopied> {
  const sum = { copied: 0, copiedBytes: 0, same: 0, unused: 0, problems: 0 };
  const examples: { key: string; problem: FileProblem }[] = [];
  const note = (key: string, problem: FileProblem): void => {
    sum.problems += 1;
    if (examples.length < EXAMPLES_MAX) examples.push({ key, problem });
  };
  const rows = readRows(options.db);
  const work = async (): Promise<void> => {
    for await (const row of rows) {
      const { kind, bytes } = await copyFile(options, row);
      if (kind === 'missing') note(row.key, 'missing');
      else sum[kind] += 1;
      if (kind === 'copied') sum.copiedBytes += bytes;
      const isStored = kind === 'copied' || kind === 'same';
      if (isStored && row.size !== null && Number(row.size) !== bytes) note(row.key, 'size');
      options.onFile(bytes);
    }
  };
  // The first failure ends the generator. The other workers end after their current file.
  const ended = await Promise.allSettled(Array.from({ length: PARALLEL }, work));
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return { ...sum, examples };
}

/** Counts the remaining work, as far as the database knows. */
export async function countFiles(db: Database): Promise<{ readonly files: number; readonly bytes: number }> {
  const { files, bytes } = await db
    .selectFrom('files')
    .select(({ fn }) => [fn.countAll().as('files'), fn.sum('size').as('bytes')])
    .where('removedAt', 'is', null)
    .executeTakeFirstOrThrow();
  return { files: Number(files), bytes: Number(bytes ?? 0) };
}

async function* readRows(db: Database): AsyncGenerator<FileRow> {
  for (let last = ''; ; ) {
    const rows = await db
      .selectFrom('files')
      .select(['key', 'size', 'storedAt'])
      .where('key', '>', last)
      .where('removedAt', 'is', null)
      .orderBy('key')
      .limit(ROWS_AT_ONCE)
      .execute();
    yield* rows;
    const end = rows.at(-1);
    if (end === undefined) return;
    last = end.key;
  }
}

interface Outcome {
  readonly kind: 'copied' | 'same' | 'missing' | 'unused';
  readonly bytes: number;
}

async function copyFile(
  { db, from, to, contentTypeOf }: CopyFilesOptions,
  { key, storedAt }: FileRow,
): Promise<Outcome> {
  const source = await from.open(key);
  if (source !== null && source.size === (await sizeIn(to, key))) {
    await source.close();
    return { kind: 'same', bytes: source.size };
  }
  const content = source === null ? null : await contentOf(source);
  if (content === null) {
    // The API may delete files while they are copied.
    const isMissing = storedAt !== null && (await findGrant(db, key)) !== null;
    return { kind: isMissing ? 'missing' : 'unused', bytes: 0 };
  }
  await to.put({ key, contentType: contentTypeOf(key) }, content);
  return { kind: 'copied', bytes: content.length };
}

async function sizeIn(store: Storage, key: string): Promise<number | null> {
  const object = await store.open(key);
  await object?.close();
  return object?.size ?? null;
}

/** Reads and closes the object. @returns null if it was deleted meanwhile */
async function contentOf(object: OpenObject): Promise<Buffer | null> {
  if (object.size === 0) {
    await object.close();
    return Buffer.alloc(0);
  }
  const stream = await object.read({ first: 0, last: object.size - 1 });
  return stream === null ? null : Buffer.concat(await stream.toArray());
}
