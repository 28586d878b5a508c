/** Notices a policy file that fits none of the traffic, such as one that was written for another application. */
import type { Logger } from 'pino';
import type { Match } from '#gateway/policy/match.ts';
import type { Millis } from '#shared/clock.ts';

const AFTER_MS: Millis = 60_000;
const PATHS_MAX = 10;
/** Anything but a word at the beginning of a path may be a secret or name a person, as the rest of the path may. */
const FIRST_WORD = /^\/[a-z][a-z_-]{0,30}(?=\/|$)/i;

/** The requests that a process has seen since its policies are in use. */
export interface MatchReport {
  readonly policyVersion: string;
  /** 'unmatched' after a minute of traffic that matched nothing, 'matched' after the first match. */
  readonly verdict: 'open' | 'matched' | 'unmatched';
  /** The beginnings of some paths that matched nothing. */
  readonly paths: readonly string[];
  /** Some hosts that no policy names, see OtherHosts. */
  readonly otherHosts: readonly string[];
  /** See ForeignPages. */
  readonly hasForeignPages: boolean;
}

export class Unmatched {
  readonly #onFound: ((paths: readonly string[]) => void) | null;
  readonly #paths = new Set<string>();
  #startedAt: Millis | null = null;
  #verdict: MatchReport['verdict'] = 'open';

  /** @param onFound called once, with the beginnings of some paths, if a minute of traffic matched nothing */
  constructor(onFound: ((paths: readonly string[]) => void) | null) {
    this.#onFound = onFound;
  }

  get report(): Pick<MatchReport, 'verdict' | 'paths'> {
    return { verdict: this.#verdict, paths: [...this.#paths] };
  }

  note({ path, cover, closedBy, excludedBy }: Match, now: Millis): void {
    if (this.#verdict !== 'open') return;
    if (cover !== null || closedBy !== null || excludedBy !== null) {
      this.#verdict = 'matched';
      return;
    }
    this.#startedAt ??= now;
    if (this.#paths.size < PATHS_MAX) this.#paths.add(beginningOf(path));
    if (now - this.#startedAt < AFTER_MS) return;
    this.#verdict = 'unmatched';
    this.#onFound?.([...this.#paths]);
  }
}

/** @returns a function that logs that the policy file fits none of the traffic */
export function nothingMatchedWarning(
  log: Pick<Logger, 'warn'>,
  file: string,
): (paths: readonly string[]) => void {
  return (paths) =>
    log.warn(
      { file, paths },
      'no policy has matched any request since this policy file is in use, so nothing is limited; is the policy file for this application? "npx floodgate init" writes one to begin with',
    );
}

function beginningOf(path: string): string {
  if (path === '/') return path;
  const [word = ''] = FIRST_WORD.exec(path) ?? [];
  return word === path ? path : `${word}/*`;
}
