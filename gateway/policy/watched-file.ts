/**
 * Takes an edited file into use while running: the policy file, or the certificate. A file with a mistake changes
 * nothing: what was made of the old one stays, the log says why.
 *
 * The file is looked at four times a second rather than watched: that sees it whatever way it was replaced (an editor's
 * rename, the symlink of a Kubernetes ConfigMap, a mounted volume). It is taken once it has not changed for a second,
 * so that nobody takes half of what is just being written; a text that looks cut off has to last longer. All this holds
 * for the files that it names as well: they are taken together.
 */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock, Millis } from '#shared/clock.ts';
import { type ReadBeside, readerBeside } from './beside.ts';

const LOOK_MS: Millis = 250;
const STABLE_MS: Millis = 1000;
const LOOKS_CUT_OFF_STABLE_MS: Millis = 5000;

export type Load<T> = (text: string, file: string, beside: ReadBeside) => T;

interface FileWatchOptions<T> {
  readonly file: string;
  readonly read: (file: string) => string;
  /** @throws Error that says why the text cannot be used */
  readonly load: Load<T>;
  readonly clock: Clock;
  readonly onLoaded: (loaded: T) => void;
  readonly onRefused: (error: Error) => void;
}

/** What a look at the file, and at those that it names, found. */
interface Content {
  readonly text: string | Error;
  readonly beside: ReadonlyMap<string, string | Error>;
}

/** What is in use. */
export interface WatchedTexts {
  readonly text: string;
  /** By name. */
  readonly beside: ReadonlyMap<string, string>;
}

/**
 * Loads a file, and keeps the texts that it was made of.
 *
 * @throws Error that says why it cannot be used
 */
export function loadWatched<T>(
  text: string,
  file: string,
  load: Load<T>,
): { readonly loaded: T; readonly inUse: WatchedTexts } {
  const beside = new Map<string, string>();
  const read = readerBeside(file);
  const loaded = load(text, file, (name) => {
    const found = read(name);
    beside.set(name, found);
    return found;
  });
  return { loaded, inUse: { text, beside } };
}

export class FileWatch<T> {
  readonly #options: FileWatchOptions<T>;
  readonly #readBeside: ReadBeside;
  #inUse: WatchedTexts;
  /** Names of the files that the text read last asked for: they are looked at as well. */
  #named: ReadonlySet<string>;
  /** Identity, size and times of the files at the last look; '' before the first one. */
  #signature = '';
  #content: Content = { text: '', beside: new Map() };
  #unchangedSince: Millis = 0;
  /** The file has changed, or somebody asked, and it has not been judged since. */
  #pending = false;
  #forced = false;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #refusal: string | null = null;

  constructor(inUse: WatchedTexts, options: FileWatchOptions<T>) {
    this.#inUse = inUse;
    this.#named = new Set(inUse.beside.keys());
    this.#options = options;
    this.#readBeside = readerBeside(options.file);
  }

  /** Of the file, as it is in use. */
  get text(): string {
    return this.#inUse.text;
  }

  /** Of the files that it names, by name. */
  get beside(): ReadonlyMap<string, string> {
    return this.#inUse.beside;
  }

  /** Why the file as it is now is not in use; null: it is, as far as is known. */
  get refusal(): string | null {
    return this.#refusal;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    this.#timer.unref();
  }

  /** SIGHUP: take the file also when it seems unchanged, as soon as it is stable. */
  reload(): void {
    this.#forced = true;
    this.#pending = true;
    void this.look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** One look, or the one that is under way. Never rejects. */
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
      this.#changed(this.#read());
      return;
    }
    if (!this.#pending || this.#unchangedMs() < STABLE_MS) return;
    // Written through a memory map it may change without its times.
    const content = this.#read();
    if (!isSame(content, this.#content)) this.#changed(content);
    else if (!this.#looksCutOff(content) || this.#unchangedMs() >= LOOKS_CUT_OFF_STABLE_MS)
      this.#judge(content);
  }

  #changed(content: Content): void {
    this.#content = content;
    this.#unchangedSince = this.#options.clock();
    this.#pending = true;
  }

  #unchangedMs(): Millis {
    return this.#options.clock() - this.#unchangedSince;
  }

  #read(): Content {
    const { file, read } = this.#options;
    const readBeside = this.#readBeside;
    return {
      text: textOrError(() => read(file)),
      beside: new Map([...this.#named].map((name) => [name, textOrError(() => readBeside(name))])),
    };
  }

  /** One of them is the beginning of what is in use, or without the end of its last line. */
  #looksCutOff({ text, beside }: Content): boolean {
    const inUse = this.#inUse;
    return (
      looksCutOff(text, inUse.text) ||
      [...beside].some(([name, text]) => looksCutOff(text, inUse.beside.get(name) ?? ''))
    );
  }

  #judge({ text, beside }: Content): void {
    const { file, load, onLoaded, onRefused } = this.#options;
    const readBeside = this.#readBeside;
    const forced = this.#forced;
    this.#pending = false;
    this.#forced = false;
    this.#refusal = null;
    if (isSame({ text, beside }, this.#inUse) && !forced) return;
    const asked = new Map<string, string>();
    const named = new Set<string>();
    try {
      if (text instanceof Error) throw text;
      const loaded = load(text, file, (name) => {
        named.add(name);
        const read = beside.get(name) ?? readBeside(name);
        if (read instanceof Error) throw read;
        asked.set(name, read);
        return read;
      });
      this.#inUse = { text, beside: asked };
      this.#named = named;
      onLoaded(loaded);
    } catch (error) {
      // What the refused text names is what will be corrected.
      this.#named = new Set([...this.#named, ...named]);
      this.#refusal = (error as Error).message;
      onRefused(error as Error);
    }
  }
}

function textOrError(read: () => string): string | Error {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function looksCutOff(text: string | Error, inUse: string): boolean {
  if (typeof text !== 'string' || text === inUse) return false;
  return inUse.startsWith(text) || !text.endsWith('\n');
}

function isSame(a: Content, b: Content): boolean {
  return (
    isSameText(a.text, b.text) &&
    a.beside.size === b.beside.size &&
    [...a.beside].every(([name, text]) => isSameText(text, b.beside.get(name)))
  );
}

function isSameText(a: string | Error, b: string | Error | undefined): boolean {
  return a instanceof Error && b instanceof Error ? a.message === b.message : a === b;
}

/** Follows symbolic links, so it changes with what they point to. */
async function signatureOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch (error) {
    return `error ${(error as NodeJS.ErrnoException).code}`;
  }
}
