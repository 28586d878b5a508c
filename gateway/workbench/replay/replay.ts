/**
 * Decides the requests of access logs again by a policy file, to show what it would have allowed and denied. The live
 * code decides, by the clock of the log. As in a gateway, a denied request is charged nowhere. A request that was
 * denied in the log is decided like any other.
 */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { count } from '#gateway/workbench/number-text.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import { ClientCounts } from './client-counts.ts';
import type { LoggedRequest } from './formats/logged-request.ts';
import { Judge, type Judged, type JudgeOptions } from './judge.ts';
import type { LogFiles } from './log-files.ts';
import { notesOf } from './notes.ts';
import { RouteUse, USES_MAX } from './route-use.ts';
import { Tally } from './tally.ts';

interface ReplayOptions extends Omit<JudgeOptions, 'clock'> {
  readonly logs: LogFiles;
  readonly set: PolicySet;
  /** The policy file to compare with; null for none. */
  readonly against: PolicySet | null;
  /** Whether to report how clients use each route. */
  readonly withRoutes: boolean;
}

const SHOWN_MAX = 10;

/** A policy file that decides the requests, with its results. */
class Side {
  readonly file: string;
  readonly judge: Judge;
  readonly tally: Tally;
  /** Requests that only this side denies, and their clients. */
  readonly onlyDenied = new ClientCounts();
  onlyDeniedRequests = 0;

  constructor(set: PolicySet, options: JudgeOptions) {
    this.file = set.file;
    this.judge = new Judge(set, options);
    this.tally = new Tally(set);
  }

  decide(request: LoggedRequest, at: Millis): Judged {
    const judged = this.judge.judge(request);
    this.tally.add(judged, at);
    if (!isDenial(judged)) this.judge.answered(judged, request);
    return judged;
  }

  addOnlyDenied({ weighed }: Judged): void {
    this.onlyDeniedRequests++;
    if (weighed.kind !== 'deny') return;
    const identity = weighed.decision.violated[0]?.bucket.identity;
    if (identity !== undefined) this.onlyDenied.add(identity.digest);
  }
}

function isDenial({ weighed: { kind } }: Judged): boolean {
  return kind === 'listed' || kind === 'banned' || kind === 'deny';
}

export type ReplayResult = Awaited<ReturnType<typeof replay>>;

/**
 * @returns the JSON document. Times are ISO 8601.
 * @throws UnknownFormatError, or the error of a file that cannot be read
 */
export async function replay({ logs, set, against, trust, salt, withRoutes }: ReplayOptions) {
  let now: Millis = 0;
  let firstAt: Millis | null = null;
  let requests = 0;
  let digested = 0;
  let chained = 0;
  const judging = { clock: () => now, trust, salt };
  const own = new Side(set, judging);
  const other = against === null ? null : new Side(against, judging);
  const routes = withRoutes ? new RouteUse(set) : null;

  await logs.each((request, at) => {
    now = at;
    firstAt ??= at;
    requests++;
    const judged = own.decide(request, at);
    const isDenied = isDenial(judged);
    routes?.add(request, judged, at);
    if (request.digests !== null) digested++;
    else if (request.sender?.forwardedFor !== '') chained++;
    if (other === null) return;
    const compared = other.decide(request, at);
    if (isDenied && !isDenial(compared)) own.addOnlyDenied(judged);
    if (!isDenied && isDenial(compared)) other.addOnlyDenied(compared);
  });

  const { judge, tally } = own;
  const { results } = tally;
  const used = routes?.end() ?? null;
  const unread = trust.kind === 'none' ? chained : 0;
  const notes = notesOf({ set, results, logs, judge, chained: unread, hasDigests: digested > 0 });
  if (routes?.isFull === true)
    notes.push(`routes show only the first ${count(USES_MAX)} clients, each counted once for each route`);
  return {
    file: set.file,
    formats: [...logs.formats],
    lines: logs.lines,
    unreadable: logs.unreadable,
    unreadableLines: logs.samples,
    from: firstAt === null ? null : isoTime(firstAt),
    to: firstAt === null ? null : isoTime(now),
    requests,
    ...tally.counts,
    policies: results,
    comparison: other === null ? null : comparisonOf(own, other),
    /** The busiest routes; null if they were not asked for. */
    routes: used,
    /** Remarks on how exact the figures are. */
    notes,
  };
}

function comparisonOf(own: Side, other: Side) {
  return {
    against: other.file,
    /** Requests that only this file denies, and that only the other file denies. */
    newlyDenied: own.onlyDeniedRequests,
    newlyAllowed: other.onlyDeniedRequests,
    identitiesNewlyDenied: own.onlyDenied.size,
    mostNewlyDenied: own.onlyDenied.most(SHOWN_MAX),
    identitiesNewlyAllowed: other.onlyDenied.size,
    mostNewlyAllowed: other.onlyDenied.most(SHOWN_MAX),
    policiesAgainst: other.tally.results,
  };
}
