/** Notices a policy file that fits none of the traffic, such as one that was written for another application. */
import type { Millis } from '#shared/clock.ts';

const AFTER_MS: Millis = 60_000;
const PATHS_MAX = 10;
/** Anything but a word at the beginning of a path may be a secret or name a person, as the rest of the path may. */
const FIRST_WORD = /^\/[a-z][a-z_-]{0,30}(?=\/|$)/i;

export class Unmatched {
  readonly #onFound: (paths: readonly string[]) => void;
  readonly #paths = new Set<string>();
  #startedAt: Millis | null = null;
  #isDecided = false;

  /** @param onFound called once, with the beginnings of some paths, if a minute of traffic matched nothing */
  constructor(onFound: (paths: readonly string[]) => void) {
    this.#onFound = onFound;
  }

  /** @param path in canonical form @param isNamed whether the policy file names its route */
  note(path: string, isNamed: boolean, now: Millis): void {
    if (this.#isDecided) return;
    this.#isDecided = isNamed;
    if (isNamed) return;
    this.#startedAt ??= now;
    if (this.#paths.size < PATHS_MAX) this.#paths.add(beginningOf(path));
    if (now - this.#startedAt < AFTER_MS) return;
    this.#isDecided = true;
    this.#onFound([...this.#paths]);
  }
}

function beginningOf(path: string): string {
  if (path === '/') return path;
  const [word = ''] = FIRST_WORD.exec(path) ?? [];
  return word === path ? path : `${word}/*`;
}
