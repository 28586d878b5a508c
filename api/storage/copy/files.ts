/**
 * Copies uploaded files from one store to another. The table `files` lists them, because a folder has only the hashes
 * of their keys. Each file appears whole or not at all, and is read back after it was written. Files that already exist
 * are skipped, so an interrupted copy can be resumed. The rows do not change, because a key is the same in every store.
 */
import { createHash } from 'node:crypto';
import type { Database } from '#api/db/schema.ts';
import { findGrant } from '../files.ts';
import type { OpenObject, Storage } from '../storage.ts';

interface CopyFilesOptions {
  readonly db: Database;
  readonly from: Storage;
  readonly to: Storage;
  readonly contentTypeOf: (key: string) => string;
  /** Number of files at a time. Each is in memory meanwhile, at most 10 MiB. */
  readonly parallel: number;
  /** Called when a file is done. */
  readonly onFile?: (bytes: number) => void;
}

type FileProblem =
  /** The file is in the database, but not in the store. */
  | 'missing'
  /** The size differs from that in the database. The file was copied nevertheless. */
  | 'size'
  /** The bytes that were read back differ from those that were written. */
  | 'different';

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

interface FileRow {
  readonly key: string;
  readonly size: number | null;
  readonly storedAt: string | null;
}

type Outcome =
  | { readonly kind: 'copied' | 'same'; readonly bytes: number; readonly problem: FileProblem | null }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unused' };

/** Copies all files. @throws StorageUnavailable */
export async function copyFiles(options: CopyFilesOptions): Promise<FilesCopied> {
  const { db, parallel, onFile = () => undefined } = options;
  const sum = { copied: 0, copiedBytes: 0, same: 0, unused: 0, problems: 0 };
  const examples: { key: string; problem: FileProblem }[] = [];
  const note = (key: string, problem: FileProblem): void => {
    sum.problems += 1;
    if (examples.length < EXAMPLES_MAX) examples.push({ key, problem });
  };
  const rows = readRows(db);
  const work = async (): Promise<void> => {
    for await (const row of rows) {
      const outcome = await copyFile(options, row);
      switch (outcome.kind) {
        case 'unused':
          sum.unused += 1;
          break;
        case 'missing':
          note(row.key, 'missing');
          break;
        case 'copied':
        case 'same':
          sum[outcome.kind] += 1;
          if (outcome.kind === 'copied') sum.copiedBytes += outcome.bytes;
          if (outcome.problem !== null) note(row.key, outcome.problem);
          break;
        default:
          outcome satisfies never;
      }
      onFile('bytes' in outcome ? outcome.bytes : 0);
    }
  };
  // The first failure ends the generator. The other workers end after their current file.
  const ended = await Promise.allSettled(Array.from({ length: parallel }, work));
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

async function copyFile({ db, from, to, contentTypeOf }: CopyFilesOptions, row: FileRow): Promise<Outcome> {
  const { key } = row;
  const source = await from.open(key);
  if (source === null) {
    if (row.storedAt === null) return { kind: 'unused' };
    // The API may delete files while they are copied.
    return (await findGrant(db, key)) !== null ? { kind: 'missing' } : { kind: 'unused' };
  }
  const bytes = source.size;
  const sizeProblem = row.size !== null && Number(row.size) !== bytes ? 'size' : null;
  const there = await to.open(key);
  if (there !== null && (await isSame(source, there))) return { kind: 'same', bytes, problem: sizeProblem };
  // The comparison has read or closed the source file, so it must be opened again.
  const again = there === null ? source : await from.open(key);
  const content = again === null ? null : await contentOf(again);
  if (content === null) return (await findGrant(db, key)) !== null ? { kind: 'missing' } : { kind: 'unused' };
  await to.put({ key, contentType: contentTypeOf(key) }, content);
  const written = await to.open(key);
  const isWhole = written !== null && (await hasDigest(written, content.length, md5(content)));
  return { kind: 'copied', bytes: content.length, problem: isWhole ? sizeProblem : 'different' };
}

/** Compares two files with as little reading as possible, and closes both. */
async function isSame(one: OpenObject, other: OpenObject): Promise<boolean> {
  const [known, knownToo] = [md5In(one.etag), md5In(other.etag)];
  const [read, compared] = known === null ? [one, other] : [other, one];
  try {
    if (one.size !== other.size) return false;
    if (known !== null && known === knownToo) return true;
    const content = await contentOf(read);
    return content !== null && (await hasDigest(compared, content.length, md5(content)));
  } finally {
    await one.close();
    await other.close();
  }
}

/** Compares the digest, and closes the object. */
async function hasDigest(object: OpenObject, size: number, digest: string): Promise<boolean> {
  try {
    if (object.size !== size) return false;
    if (md5In(object.etag) === digest) return true;
    const content = await contentOf(object);
    return content !== null && md5(content) === digest;
  } finally {
    await object.close();
  }
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

function md5(content: Buffer): string {
  return createHash('md5').update(content).digest('hex');
}

/** Returns the MD5, which most buckets use as the tag of a file; null if the file must be read. */
function md5In(etag: string): string | null {
  return /^"([0-9a-f]{32})"$/.exec(etag)?.[1] ?? null;
}
