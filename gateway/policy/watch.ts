/**
 * Takes an edited policy file into use while running. A file with a mistake changes nothing: the old table stays, the
 * log says why.
 *
 * The file is looked at four times a second rather than watched: that sees it whatever way it was replaced (an editor's
 * rename, the symlink of a Kubernetes ConfigMap, a mounted volume). It is taken once it has not changed for a second,
 * so that nobody takes half of what is just being written; a text that looks cut off has to last longer.
 */
import { stat } from 'node:fs/promises';
import type { Clock, Millis } from '#shared/clock.ts';
import type { PolicySet } from './policy.ts';

const LOOK_MS: Millis = 250;
const STABLE_MS: Millis = 1000;
const LOOKS_CUT_OFF_STABLE_MS: Millis = 5000;

export interface PolicyWatchOptions {
  readonly file: string;
  readonly read: (file: string) => string;
  /** @throws Error that says why the text cannot be used */
  readonly load: (text: string, file: string) => PolicySet;
  readonly clock: Clock;
  readonly onLoaded: (set: PolicySet) => void;
  readonly onRefused: (error: Error) => void;
}

/** What a look at the file found. */
type Content = string | Error;

export class PolicyWatch {
  readonly #options: PolicyWatchOptions;
  /** In use. */
  #text: string;
  /** Identity, size and times of the file at the last look; '' before the first one. */
  #signature = '';
  #content: Content = '';
  #unchangedSince: Millis = 0;
  /** The file has changed, or somebody asked, and it has not been judged since. */
  #pending = false;
  #forced = false;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** @param text of the file that is in use now */
  constructor(text: string, options: PolicyWatchOptions) {
    this.#text = text;
    this.#options = options;
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
    this.#looking ??= signatureOf(this.#options.file).then((signature) => {
      this.#looking = null;
      this.#compare(signature);
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
    try {
      return this.#options.read(this.#options.file);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** The beginning of what is in use, or without the end of its last line. */
  #looksCutOff(content: Content): boolean {
    if (typeof content !== 'string' || content === this.#text) return false;
    return this.#text.startsWith(content) || !content.endsWith('\n');
  }

  #judge(content: Content): void {
    const { file, load, onLoaded, onRefused } = this.#options;
    const forced = this.#forced;
    this.#pending = false;
    this.#forced = false;
    if (content === this.#text && !forced) return;
    try {
      if (content instanceof Error) throw content;
      const set = load(content, file);
      this.#text = content;
      onLoaded(set);
    } catch (error) {
      onRefused(error as Error);
    }
  }
}

function isSame(a: Content, b: Content): boolean {
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
