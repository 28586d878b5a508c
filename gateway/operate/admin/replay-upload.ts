/** Receives an upload for a replay in a private folder, runs the command, and deletes the folder in every case. */
import { mkdtemp, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { WatchedTexts } from '#gateway/policy/watched-file.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { timeLimit } from '#shared/within.ts';
import { type ReplayOutcome, replayFiles, STOPPED } from './replay-process.ts';

export interface ReplayBounds {
  readonly policyBytes: number;
  readonly logBytes: number;
  /** The longest time without a byte of the body. */
  readonly silenceMs: Millis;
  readonly uploadMs: Millis;
  readonly runMs: Millis;
}

interface ReplayUploadOptions {
  readonly policyBytes: number;
  readonly bounds: ReplayBounds;
  readonly temporaryFolder: string;
  readonly clock: Clock;
  /** The policies in use. */
  readonly inUse: WatchedTexts;
  readonly salt: () => Promise<string>;
  readonly onReceived: (logBytes: number) => void;
  /** Stops the replay. */
  readonly signal: AbortSignal;
}

/** Names for messages. They have spaces, so they differ from all files next to a policy file. */
const NAMES = { edited: 'edited file', inUse: 'file in use', log: 'uploaded log' } as const;
const FOLDER = 'floodgate-replay-';
/** Age after which a folder is deleted. It is longer than any replay, so the gateway of the folder was killed. */
const LEFT_MS: Millis = 600_000;

/** @returns the reply */
export async function replayUpload(body: Readable, options: ReplayUploadOptions): Promise<ReplayOutcome> {
  const { temporaryFolder, signal, clock } = options;
  await sweep(temporaryFolder, clock());
  let folder: string | null = null;
  try {
    folder = await mkdtemp(join(temporaryFolder, FOLDER));
    return (await receive(body, folder, options)) ?? (await run(folder, options));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    // The connection is closed. This may be the first place that notices it.
    if (signal.aborted || body.errored !== null) return STOPPED;
    if (code === undefined || syscall === undefined) throw error;
    return refusal(503, `the log cannot be kept in ${temporaryFolder} (${code}); make room there`);
  } finally {
    if (folder !== null) await rm(folder, { recursive: true, force: true });
  }
}

async function run(folder: string, { salt, inUse, bounds, signal }: ReplayUploadOptions) {
  for (const [name, text] of [...inUse.referenced, [NAMES.inUse, inUse.text] as const])
    await writeFile(join(folder, name), text, { mode: 0o600, flag: 'wx' });
  const secret = await salt();
  return replayFiles({ ...NAMES, folder, salt: secret, signal, timeoutMs: bounds.runMs });
}

/** Writes both parts of the body. @returns null, or the reason for a failure */
async function receive(
  body: Readable,
  folder: string,
  { policyBytes, bounds, signal, onReceived }: ReplayUploadOptions,
): Promise<ReplayOutcome | null> {
  const edited = await open(join(folder, NAMES.edited), 'wx', 0o600);
  const log = await open(join(folder, NAMES.log), 'wx', 0o600);
  const pieces = body.iterator({ destroyOnReturn: false });
  const tooLong = once(timeLimit(bounds.uploadMs));
  const stopped = once(signal);
  let total = 0;
  try {
    for (;;) {
      const silent = once(timeLimit(bounds.silenceMs));
      const next = await Promise.race([pieces.next(), silent, tooLong, stopped]);
      if (signal.aborted) return STOPPED;
      if (next === null) return refusal(408, 'the log came too slowly; send a shorter part of it');
      if (next.done === true) break;
      const piece: Buffer = next.value;
      const atLog = Math.max(0, Math.min(piece.length, policyBytes - total));
      total += piece.length;
      if (total - policyBytes > bounds.logBytes)
        return refusal(
          413,
          `a log has at most ${bounds.logBytes} bytes here; compress it with gzip, or use floodgate replay on the command line`,
        );
      if (atLog > 0) await edited.writeFile(piece.subarray(0, atLog));
      if (atLog < piece.length) await log.writeFile(piece.subarray(atLog));
    }
  } finally {
    await Promise.all([edited.close(), log.close()]);
  }
  if (total < policyBytes)
    return refusal(
      400,
      `the body has ${total} bytes, less than policyBytes says; send the whole policy file`,
    );
  onReceived(total - policyBytes);
  return null;
}

function refusal(status: ReplayOutcome['status'], message: string): ReplayOutcome {
  return { status, document: { message } };
}

function once(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}

async function sweep(temporaryFolder: string, now: Millis): Promise<void> {
  const names = await readdir(temporaryFolder).catch(() => []);
  for (const name of names.filter((one) => one.startsWith(FOLDER))) {
    const path = join(temporaryFolder, name);
    // The folder belongs to another user, or is already deleted. Neither is an error here.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }));
    if (now - mtimeMs > LEFT_MS) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}
