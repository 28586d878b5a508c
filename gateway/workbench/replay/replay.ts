/**
 * Decides the requests of access logs again by a policy file, to show what it would have allowed and denied. The live
 * code decides, by the clock of the log. As in a gateway, a denied request is charged nowhere. A request that was
 * denied in the log is decided like any other.
 */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import { ClientCounts, Clients } from './clients.ts';
import { Judge, type Judged, type JudgeOptions } from './judge.ts';
import type { LogFiles } from './log-files.ts';
import { notesOf } from './notes.ts';
import { RouteUse } from './routes/route-use.ts';
import { Tally } from './tally.ts';
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

const SHOWN_MAX = 10;

/** A policy file that decides the requests, with its results. */
class Side {
  readonly judge: Judge;
  readonly tally: Tally;

  constructor(set: PolicySet, clients: Clients, options: JudgeOptions) {
    this.judge = new Judge(set, options);
    this.tally = new Tally(set, clients);
  }

  /** @returns the denial; null if the request is not denied */
  decide(request: LoggedRequest, at: Millis): Judged | null {
    const judged = this.judge.judge(request);
    this.tally.add(judged, at);
    const { kind } = judged.weighed;
    if (kind === 'listed' || kind === 'banned' || kind === 'deny') return judged;
    this.judge.answered(judged, request);
    return null;
  }
}

/** Requests that one of two files denies, and their clients. */
class Changed {
  readonly clients: ClientCounts;
  requests = 0;

  constructor(clients: Clients) {
    this.clients = new ClientCounts(clients);
  }

  add({ weighed }: Judged): void {
    this.requests++;
    if (weighed.kind !== 'deny') return;
    const identity = weighed.decision.violated[0]?.bucket.identity;
    if (identity !== undefined) this.clients.add(identity.digest);
  }
}

export class Replay {
  readonly #options: ReplayOptions;
  readonly #own: Side;
  readonly #against: Side | null;
  readonly #routes: RouteUse | null;
  readonly #newlyDenied: Changed;
  readonly #newlyAllowed: Changed;
  #now: Millis = 0;
  #firstAt: Millis | null = null;
  #requests = 0;
  #digested = 0;
  #chained = 0;
  /** Denied in the log; then, allowed in the log and denied now, and the reverse. */
  readonly #logged = { denied: 0, newlyDenied: 0, newlyAllowed: 0 };

  constructor(options: ReplayOptions) {
    const { set, against, trust, salt } = options;
    this.#options = options;
    const judging = { clock: () => this.#now, trust, salt };
    const clients = new Clients();
    this.#own = new Side(set, clients, judging);
    this.#against = against === null ? null : new Side(against, clients, judging);
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
    return this.result(order.late);
  }

  #take(request: LoggedRequest, at: Millis): void {
    this.#now = at;
    this.#firstAt ??= at;
    this.#requests++;
    this.#routes?.add(request, at);
    const denial = this.#own.decide(request, at);
    if (request.digests !== null) this.#compareWithLog(request.digests.decision === 'deny', denial !== null);
    else if (request.sender?.forwardedFor !== '') this.#chained++;
    if (this.#against === null) return;
    const other = this.#against.decide(request, at);
    if (denial !== null && other === null) this.#newlyDenied.add(denial);
    if (other !== null && denial === null) this.#newlyAllowed.add(other);
  }

  #compareWithLog(wasDenied: boolean, isDenied: boolean): void {
    this.#digested++;
    if (wasDenied) this.#logged.denied++;
    if (isDenied && !wasDenied) this.#logged.newlyDenied++;
    if (wasDenied && !isDenied) this.#logged.newlyAllowed++;
  }

  /** Returns the JSON document. Times are ISO 8601. */
  result(late: number) {
    const { logs, set, trust } = this.#options;
    const { counts, formats, cutShort } = logs;
    const { judge, tally } = this.#own;
    const { allowed, denied, uncovered, malformed, banned, unknown, results } = tally;
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
      /** Requests that a ban refused, according to the log. */
      banned,
      /** Requests with policies whose counted client is not in the log. */
      unknown,
      policies: results,
      /** Decisions of the gateway that wrote the log; null for logs of other programs. */
      logged: this.#digested === 0 ? null : this.#logged,
      comparison: this.#against === null ? null : this.#comparisonWith(this.#against),
      /** The busiest routes; null if they were not asked for. */
      routes: this.#routes?.end() ?? null,
      /** Remarks on how exact the figures are. */
      notes: notesOf({
        set,
        results,
        late,
        cutShort,
        chained: trust.kind === 'none' ? this.#chained : 0,
        endless: judge.endless,
        unreadChains: judge.unreadChains,
        hasDigests: this.#digested > 0,
        onGroups: judge.learning.notes(this.#now, this.#digested > 0),
        isFull: judge.isFull,
      }),
    };
  }

  #comparisonWith({ tally }: Side) {
    const [denied, allowed] = [this.#newlyDenied, this.#newlyAllowed];
    return {
      against: this.#options.against?.file ?? '',
      /** Requests that only this file denies, and that only the other file denies. */
      newlyDenied: denied.requests,
      newlyAllowed: allowed.requests,
      identitiesNewlyDenied: denied.clients.size,
      mostNewlyDenied: denied.clients.most(SHOWN_MAX),
      identitiesNewlyAllowed: allowed.clients.size,
      mostNewlyAllowed: allowed.clients.most(SHOWN_MAX),
      policiesAgainst: tally.results,
    };
  }
}

export type ReplayResult = ReturnType<Replay['result']>;

function isoOf(at: Millis | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
