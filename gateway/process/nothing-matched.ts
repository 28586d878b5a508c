/**
 * Decides for all workers whether the policy file fits none of the traffic. A worker cannot know: the requests that match
 * may all arrive at another one.
 */
import { type MatchReport, PATHS_MAX } from '#gateway/observe/unmatched.ts';

interface NothingMatchedOptions {
  /** Version of the policies in use. Reports about other ones are ignored, because workers reload at different times. */
  readonly policyVersion: string;
  /** Asks all workers for new reports. */
  readonly ask: () => Promise<readonly MatchReport[]>;
  /** Called once, with the beginnings of some paths, if a minute of traffic matched nothing. */
  readonly onFound: (paths: readonly string[]) => void;
}

export class NothingMatched {
  readonly #options: NothingMatchedOptions;
  #policyVersion: string;
  #state: 'open' | 'asking' | 'decided' = 'open';

  constructor(options: NothingMatchedOptions) {
    this.#options = options;
    this.#policyVersion = options.policyVersion;
  }

  /** The policy file was loaded again. */
  restart(policyVersion: string): void {
    this.#policyVersion = policyVersion;
    this.#state = 'open';
  }

  /** Takes a report of one worker. */
  see({ policyVersion, verdict }: MatchReport): void {
    if (this.#state === 'decided' || policyVersion !== this.#policyVersion) return;
    if (verdict === 'matched') this.#state = 'decided';
    else if (verdict === 'unmatched' && this.#state === 'open') void this.#confirm();
  }

  /** Another worker may have had a match since its last report, so all of them report again. */
  async #confirm(): Promise<void> {
    this.#state = 'asking';
    const answers = await this.#options.ask();
    const reports = answers.filter(({ policyVersion }) => policyVersion === this.#policyVersion);
    for (const report of reports) this.see(report);
    if (this.#state !== 'asking') return;
    const isFound = reports.some(({ verdict }) => verdict === 'unmatched');
    this.#state = isFound ? 'decided' : 'open';
    if (!isFound) return;
    const paths = new Set(reports.flatMap((report) => report.paths));
    this.#options.onFound([...paths].slice(0, PATHS_MAX));
  }
}
