/**
 * Takes an edited policy file into use while running. A file with a mistake changes nothing: the old table stays, the
 * log says why. Watching polls once a second, because that also sees replaced files, mounted volumes and config maps.
 */
import { unwatchFile, watchFile } from 'node:fs';
import type { Millis } from '#shared/clock.ts';
import { loadPolicies } from './load.ts';
import type { PolicySet } from './policy.ts';

const POLL_MS: Millis = 1000;

export interface PolicyWatchOptions {
  readonly file: string;
  readonly read: (file: string) => string;
  readonly onLoaded: (set: PolicySet) => void;
  readonly onRefused: (error: Error) => void;
}

export class PolicyWatch {
  readonly #options: PolicyWatchOptions;
  #text: string;
  readonly #onChange = (): void => this.#check(false);

  /** @param text of the file that is in use now */
  constructor(text: string, options: PolicyWatchOptions) {
    this.#text = text;
    this.#options = options;
  }

  start(): void {
    watchFile(this.#options.file, { interval: POLL_MS, persistent: false }, this.#onChange);
    // An edit since the file was read for the start: the first look at its times is taken only now.
    this.#check(false);
  }

  /** SIGHUP: look at the file now, also when it seems unchanged. */
  reload(): void {
    this.#check(true);
  }

  stop(): void {
    unwatchFile(this.#options.file, this.#onChange);
  }

  #check(always: boolean): void {
    const { file, read, onLoaded, onRefused } = this.#options;
    try {
      const text = read(file);
      if (text === this.#text && !always) return;
      const set = loadPolicies(text, file);
      this.#text = text;
      onLoaded(set);
    } catch (error) {
      onRefused(error as Error);
    }
  }
}
