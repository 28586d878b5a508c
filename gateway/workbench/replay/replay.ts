/**
 * Decides the requests of access logs again by a policy file, to show what it would have allowed and denied. The live
 * code decides, by the clock of the log. As in a gateway, a denied request is charged nowhere. A request that was
 * denied in the log is decided like any other.
 */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { FormatName, LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { ClientCounts, Clients, type Frequent } from './clients.ts';
import { Judge, type Judged } from './judge.ts';
import type { UnreadableLine } from './log-file.ts';
import type { LogFiles } from './log-files.ts';
import { notesOf } from './notes.ts';
import { RouteUse, type UsedRoute } from './routes/route-use.ts';
import { type PolicyResult, Tally } from './tally.ts';
import { TimeOrder } from './time-order.ts';

interface ReplayOptions {
  readonly logs: LogFiles;
  readonly set: PolicySet;
  /** The policy file to compare with; null for none. */
  readonly against: PolicySet | null;
  /** Reads client addresses in logs of other programs. */
  readonly trust: ProxyTrust;
  /** Salt for digests of addresses and keys in such logs. */
  readonly salt: string;
  /** Whether to report how clients use each route. */
  readonly withRoutes: boolean;
}

/** The JSON document. Times are ISO 8601. */
export interface ReplayResult {
  readonly file: string;
  readonly formats: readonly FormatName[];
  readonly lines: number;
  readonly unreadable: number;
  readonly unreadableLines: readonly UnreadableLine[];
  /** Times of the first and the last request; null if there is none. */
  readonly from: string | null;
  readonly to: string | null;
  readonly requests: number;
  readonly allowed: number;
  readonly denied: number;
  readonly uncovered: number;
  readonly malformed: number;
  /** Requests with policies whose counted client is not in the log. */
  readonly unknown: number;
  readonly policies: readonly PolicyResult[];
  /** Decisions of the gateway that wrote the log; null for logs of other programs. */
  readonly logged: LoggedOutcome | null;
  readonly comparison: Comparison | null;
  /** The busiest routes; null if they were not asked for. */
  readonly routes: readonly UsedRoute[] | null;
  /** Remarks on how exact the figures are. */
  readonly notes: readonly string[];
}

interface LoggedOutcome {
  readonly denied: number;
  /** Allowed in the log and denied now; and the reverse. */
  readonly newlyDenied: number;
  readonly newlyAllowed: number;
}

export interface Comparison {
  readonly against: string;
  /** Requests that only this file denies, and that only the other file denies. */
  readonly newlyDenied: number;
  readonly newlyAllowed: number;
  readonly identitiesNewlyDenied: number;
  readonly mostNewlyDenied: readonly Frequent[];
  readonly identitiesNewlyAllowed: number;
  readonly mostNewlyAllowed: readonly Frequent[];
  /** Results of the same requests under the other file. */
  readonly policiesAgainst: readonly PolicyResult[];
}

const SHOWN_MAX = 10;

interface Against {
  readonly file: string;
  readonly judge: Judge;
  readonly tally: Tally;
}

/** Requests that one of two files denies, and their clients. */
class Changed {
  readonly clients: ClientCounts;
  requests = 0;

  constructor(clients: Clients) {
    this.clients = new ClientCounts(clients);
  }

  /** @param judged the result of a request under the file that denies it */
  add({ weighed }: Judged): void {
    this.requests++;
    if (weighed.kind !== 'deny') return;
    const identity = weighed.decision.violated[0]?.bucket.identity;
    if (identity !== undefined) this.clients.add(identity.digest);
  }
}

export class Replay {
  readonly #options: ReplayOptions;
  readonly #judge: Judge;
  readonly #against: Against | null;
  readonly #tally: Tally;
  readonly #routes: RouteUse | null;
  readonly #newlyDenied: Changed;
  readonly #newlyAllowed: Changed;
  #now: Millis = 0;
  #firstAt: Millis | null = null;
  #requests = 0;
  #digested = 0;
  #chained = 0;
  readonly #logged = { denied: 0, newlyDenied: 0, newlyAllowed: 0 };

  constructor(options: ReplayOptions) {
    const { set, against, trust, salt } = options;
    this.#options = options;
    const clock = (): Millis => this.#now;
    const clients = new Clients();
    this.#judge = new Judge(set, { clock, trust, salt });
    this.#against =
      against === null
        ? null
        : {
            file: against.file,
            judge: new Judge(against, { clock, trust, salt }),
            tally: new Tally(against, clients),
          };
    this.#tally = new Tally(set, clients);
    this.#routes = options.withRoutes ? new RouteUse(set, trust) : null;
    this.#newlyDenied = new Changed(clients);
    this.#newlyAllowed = new Changed(clients);
  }

  /** @throws UnknownFormatError, or the error of a file that cannot be read */
  async run(): Promise<ReplayResult> {
    const { logs } = this.#options;
    const order = new TimeOrder((request, at) => this.#take(request, at));
    await logs.each((request) => order.add(request));
    order.end();
    return this.#result(order.late);
  }

  #take(request: LoggedRequest, at: Millis): void {
    this.#now = at;
    this.#firstAt ??= at;
    this.#requests++;
    this.#routes?.add(request, at);
    const judged = this.#judge.judge(request);
    this.#tally.add(judged, at);
    const isDenied = isDenial(judged);
    if (!isDenied) this.#judge.answered(judged, request);
    if (request.digests !== null) this.#compareWithLog(request.digests.decision === 'deny', isDenied);
    else if (request.sender?.forwardedFor !== '') this.#chained++;
    if (this.#against !== null) this.#compare(this.#against, request, judged, at);
  }

  #compareWithLog(wasDenied: boolean, isDenied: boolean): void {
    this.#digested++;
    if (wasDenied) this.#logged.denied++;
    if (isDenied && !wasDenied) this.#logged.newlyDenied++;
    if (wasDenied && !isDenied) this.#logged.newlyAllowed++;
  }

  #compare({ judge, tally }: Against, request: LoggedRequest, judged: Judged, at: Millis): void {
    const other = judge.judge(request);
    tally.add(other, at);
    const [isDenied, wasDenied] = [isDenial(judged), isDenial(other)];
    if (!wasDenied) judge.answered(other, request);
    if (isDenied && !wasDenied) this.#newlyDenied.add(judged);
    if (wasDenied && !isDenied) this.#newlyAllowed.add(other);
  }

  #result(late: number): ReplayResult {
    const { logs, set, trust } = this.#options;
    const [against, newlyDenied, newlyAllowed] = [this.#against, this.#newlyDenied, this.#newlyAllowed];
    const { counts, formats, cutShort } = logs;
    const { actsFrom } = this.#judge;
    const { allowed, denied, uncovered, malformed, unknown, results } = this.#tally;
    return {
      file: set.file,
      formats: [...formats],
      lines: counts.lines,
      unreadable: counts.unreadable,
      unreadableLines: counts.samples,
      from: isoOf(this.#firstAt),
      to: this.#firstAt === null ? null : isoOf(this.#now),
      requests: this.#requests,
      allowed,
      denied,
      uncovered,
      malformed,
      unknown,
      policies: results,
      logged: this.#digested === 0 ? null : this.#logged,
      comparison:
        against === null
          ? null
          : {
              against: against.file,
              newlyDenied: newlyDenied.requests,
              newlyAllowed: newlyAllowed.requests,
              identitiesNewlyDenied: newlyDenied.clients.size,
              mostNewlyDenied: newlyDenied.clients.most(SHOWN_MAX),
              identitiesNewlyAllowed: newlyAllowed.clients.size,
              mostNewlyAllowed: newlyAllowed.clients.most(SHOWN_MAX),
              policiesAgainst: against.tally.results,
            },
      routes: this.#routes?.end() ?? null,
      notes: notesOf({
        set,
        results,
        late,
        cutShort,
        chained: trust.kind === 'none' ? this.#chained : 0,
        endless: this.#judge.endless,
        hasDigests: this.#digested > 0,
        newcomers: actsFrom === null ? null : { actsFrom, to: this.#now },
        isFull: this.#judge.isFull,
      }),
    };
  }
}

function isDenial({ weighed }: Judged): boolean {
  return weighed.kind === 'listed' || weighed.kind === 'banned' || weighed.kind === 'deny';
}

function isoOf(at: Millis | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
