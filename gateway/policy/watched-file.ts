/**
 * Reloads a file (policy file or certificate) when it changes. If the new content has a mistake, the old one stays in
 * use and the log says why.
 *
 * The file is polled four times a second instead of watched, because polling notices every kind of replacement: an
 * editor's rename, the symlink of a Kubernetes ConfigMap, a mounted volume. It is loaded after a second without
 * changes, so that a half-written file is not read. A text that looks cut off must stay unchanged for longer. Files
 * that it names are polled and loaded together with it.
 */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock, Millis } from '#shared/clock.ts';
import { type ReadReferenced, referencedReader } from './referenced-files.ts';

const LOOK_MS: Millis = 250;
const STABLE_MS: Millis = 1000;
const LOOKS_CUT_OFF_STABLE_MS: Millis = 5000;

export type Load<T> = (text: string, file: string, readReferenced: ReadReferenced) => T;

export interface FileWatchOptions<T> {
  readonly file: string;
  readonly read: (file: string) => string;
  readonly load: Load<T>;
  /** The numbers of entries of the lists in what was loaded, by name. Lists that shrink too much are refused. */
  readonly sizesOf?: (loaded: T) => ReadonlyMap<string, number>;
  readonly clock: Clock;
  readonly onLoaded: (loaded: T) => void;
  readonly onRefused: (error: Error) => void;
}

/** Texts of the watched file, and of the files that it names. */
interface Content {
  readonly text: string | Error;
  readonly referenced: ReadonlyMap<string, string | Error>;
}

/** What is in use, and the texts from which it was loaded. */
export interface Loaded<T> extends Content {
  readonly loaded: T;
  readonly text: string;
}

export function loadWatched<T>(text: string, file: string, load: Load<T>): Loaded<T> {
  const referenced = new Map<string, string | Error>();
  return { loaded: load(text, file, noting(referenced, referencedReader(file))), text, referenced };
}

/** @returns a reader that notes what it reads, also if that fails */
function noting(asked: Map<string, string | Error>, read: ReadReferenced): ReadReferenced {
  return (name) => {
    const found = textOrError(() => read(name));
    asked.set(name, found);
    return orThrow(found);
  };
}

export class FileWatch<T> {
  /** Why the current content of the file is not in use; null if it is in use. */
  refusal: string | null = null;
  readonly #options: FileWatchOptions<T>;
  readonly #readReferenced: ReadReferenced;
  #inUse: Loaded<T>;
  /** Names of files that the latest text refers to. They are polled too. */
  #named: ReadonlySet<string>;
  /** Inode, size and times of all files at the latest poll; '' before the first. */
  #signature = '';
  #unchangedSince: Millis = 0;
  /** Whether a change or a reload waits until the files are stable. */
  #pending = false;
  #forced = false;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(inUse: Loaded<T>, options: FileWatchOptions<T>) {
    this.#inUse = inUse;
    this.#named = new Set(inUse.referenced.keys());
    this.#options = options;
    this.#readReferenced = referencedReader(options.file);
  }

  get loaded(): T {
    return this.#inUse.loaded;
  }

  get text(): string {
    return this.#inUse.text;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Loads the file for SIGHUP, even if it has not changed, once it is stable. */
  reload(): void {
    this.#forced = true;
    this.#pending = true;
    void this.look();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Polls once, or joins a running poll. Never rejects. */
  look(): Promise<void> {
    const { file } = this.#options;
    const files = [file, ...[...this.#named].map((name) => join(dirname(file), name))];
    this.#looking ??= Promise.all(files.map(signatureOf)).then((signatures) => {
      this.#looking = null;
      this.#compare(signatures.join());
    });
    return this.#looking;
  }

  #compare(signature: string): void {
    if (signature !== this.#signature) {
      this.#signature = signature;
      this.#unchangedSince = this.#options.clock();
      this.#pending = true;
      return;
    }
    const unchangedMs = this.#options.clock() - this.#unchangedSince;
    if (!this.#pending || unchangedMs < STABLE_MS) return;
    const content = this.#read();
    if (unchangedMs >= LOOKS_CUT_OFF_STABLE_MS || !this.#looksCutOff(content)) this.#judge(content);
  }

  #read(): Content {
    const { file, read } = this.#options;
    const readReferenced = this.#readReferenced;
    return {
      text: textOrError(() => read(file)),
      referenced: new Map([...this.#named].map((name) => [name, textOrError(() => readReferenced(name))])),
    };
  }

  /** Whether a text may be half-written: it is the beginning of the one in use, or does not end with a newline. */
  #looksCutOff({ text, referenced }: Content): boolean {
    const inUse = this.#inUse;
    return (
      looksCutOff(text, inUse.text) ||
      [...referenced].some(([name, text]) => looksCutOff(text, inUse.referenced.get(name)))
    );
  }

  #judge(content: Content): void {
    const { file, load, sizesOf, onLoaded, onRefused } = this.#options;
    const { text, referenced } = content;
    const forced = this.#forced;
    this.#pending = false;
    this.#forced = false;
    this.refusal = null;
    if (isSame(content, this.#inUse) && !forced) return;
    const asked = new Map<string, string | Error>();
    try {
      const read: ReadReferenced = (name) => orThrow(referenced.get(name) ?? this.#readReferenced(name));
      const loaded = load(orThrow(text), file, noting(asked, read));
      if (sizesOf !== undefined) refuseShrunken(sizesOf(this.loaded), sizesOf(loaded));
      this.#inUse = { loaded, text: orThrow(text), referenced: asked };
      this.#named = new Set(asked.keys());
      onLoaded(loaded);
    } catch (error) {
      // Keep polling the files that the refused text names, because the fix may be in one of them.
      this.#named = new Set([...this.#named, ...asked.keys()]);
      this.refusal = (error as Error).message;
      onRefused(error as Error);
    }
  }
}

/** A list must not lose nine tenths of its entries at once. */
const LEFT_AT_LEAST = 1 / 10;

/**
 * A program that renews a list but fails to fetch it often leaves an empty or a short file. Such a list would lift bans
 * and limits in silence.
 *
 * @throws Error if a list is empty, or nearly so, and was not
 */
function refuseShrunken(sizesBefore: ReadonlyMap<string, number>, sizes: ReadonlyMap<string, number>): void {
  for (const [name, now] of sizes) {
    const before = sizesBefore.get(name) ?? 0;
    if (now >= before || now > before * LEFT_AT_LEAST) continue;
    const left = now === 0 ? 'no entries any more' : `${now} ${now === 1 ? 'entry' : 'entries'}`;
    throw new Error(
      `${name} has ${left}, and had ${before}; renew it, or if this is right, restart the gateway or give the list a new name`,
    );
  }
}

function textOrError(read: () => string): string | Error {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function orThrow(text: string | Error): string {
  if (text instanceof Error) throw text;
  return text;
}

function looksCutOff(text: string | Error, inUse: string | Error = ''): boolean {
  if (text instanceof Error || text === inUse) return false;
  return (typeof inUse === 'string' && inUse.startsWith(text)) || !text.endsWith('\n');
}

function isSame(a: Content, b: Content): boolean {
  return (
    isSameText(a.text, b.text) &&
    a.referenced.size === b.referenced.size &&
    [...a.referenced].every(([name, text]) => isSameText(text, b.referenced.get(name)))
  );
}

function isSameText(a: string | Error, b: string | Error | undefined): boolean {
  return a instanceof Error && b instanceof Error ? a.message === b.message : a === b;
}

/** Returns a text that changes with the file. stat follows symbolic links, so a new target of a link changes it too. */
async function signatureOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch (error) {
    return `error ${(error as NodeJS.ErrnoException).code}`;
  }
}
