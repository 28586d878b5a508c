/** Collects the data of one request for the access log. It is filled while the request is processed, and written once. */

import type { Socket } from 'node:net';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Identifier } from '#gateway/identity/identifier.ts';
import type { Charge } from '#gateway/limiter/charge.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { PLAN } from '#gateway/policy/clients.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { EntryLog, LoggedDecision } from './log-line.ts';
import { traceIdIn } from './trace-id.ts';

const PATH_MAX = 1000;

/** This is known of a request when its line is written. */
interface LoggedFacts {
  readonly match: { readonly path: string; readonly cover: Cover | null };
  readonly charged: { readonly charge: Pick<Charge, 'buckets'>; readonly plan: string | null } | null;
  /** `identities` has one entry for each of `Cover.identifiers`, in the same order. */
  readonly identified: {
    readonly identities: readonly (Identity | null)[];
    readonly provable: Identity | null;
  } | null;
  readonly spent: Spent | null;
  readonly storeMs: Millis | null;
  /** The tightest policy comes first. */
  readonly allowed: {
    readonly verdicts: readonly { readonly policy: { readonly name: string } }[];
    readonly marks: readonly { readonly name: string }[];
  } | null;
  readonly passedAt: Millis | null;
}

export class AccessEntry {
  /** Set by the gateway's own reply. null if the application replied, or nobody. */
  decision: LoggedDecision | null = null;
  id: string | null = null;
  /** The policy that denied the request; null if none did. */
  policy: string | null = null;
  upstreamMs: Millis | null = null;
  /** The request, once its route is known. */
  request: LoggedFacts | null = null;
  /** The address of the client; null until the buckets of the request are known. */
  address: Identity | null = null;
  /** Status of a reply that bypasses the response object: protocol switches, and errors written to the socket. */
  status: number | null = null;

  readonly #log: EntryLog;
  readonly #clock: Clock;
  readonly #req: ClientRequest;
  readonly #res: ClientResponse;
  readonly #socket: Socket;
  readonly #begunAt: Millis;
  readonly #written: number;
  readonly #read: number;
  readonly #time: Millis;
  #isOver = false;

  constructor(log: EntryLog, req: ClientRequest, res: ClientResponse, clock: Clock, wallClock: Clock) {
    this.#log = log;
    this.#req = req;
    this.#res = res;
    this.#clock = clock;
    this.#socket = req.socket;
    this.#begunAt = clock();
    this.#time = wallClock();
    this.#written = this.#socket.bytesWritten;
    this.#read = this.#socket.bytesRead;
    const end = (): void => this.end();
    res.once('close', end);
    res.once('finish', end);
    this.#socket.once('close', end);
    this.#forget = () => this.#socket.off('close', end);
  }

  readonly #forget: () => void;

  /** Prevents the line, because this is not a client's request. */
  withdraw(): void {
    this.#isOver = true;
    this.#forget();
  }

  /** Writes the line. Further calls do nothing. */
  end(): void {
    if (this.#isOver || (this.status === 101 && !this.#socket.destroyed)) return;
    this.#isOver = true;
    this.#forget();
    const { headersSent, statusCode, writableFinished } = this.#res;
    const status = this.status ?? (headersSent ? statusCode : null);
    const cut = this.status === null && !writableFinished;
    this.#log.write({
      time: new Date(this.#time).toISOString(),
      method: this.#req.method ?? null,
      // The path as sent, until the canonical path is known.
      path: (this.request?.match.path ?? pathOf(this.#req.url ?? '')).slice(0, PATH_MAX),
      status,
      decision: this.decision ?? decisionIn(this.request),
      id: this.id,
      ...this.#byCounting(),
      policy:
        this.decision === null ? (this.request?.allowed?.verdicts[0]?.policy.name ?? null) : this.policy,
      identities: this.#identities(),
      address: this.address?.digest ?? null,
      unproven: this.#unproven(),
      proves: this.#proves(status),
      plan: this.#plan(),
      marked: this.request?.allowed?.marks.map(({ name }) => name) ?? [],
      requestBytes: this.#requestBytes(),
      bytes: this.#socket.bytesWritten - this.#written,
      upstreamMs: rounded(this.upstreamMs),
      storeMs: rounded(this.request?.storeMs ?? null),
      durationMs: rounded(this.#clock() - this.#begunAt),
      cut,
      trace: traceIdIn(this.#req.rawHeaders),
    });
  }

  /** The names of the policies that cover the request. Some count nobody: its client has no key, for example. */
  #byCounting(): Record<'policies' | 'uncounted', string[]> {
    const counting = new Set<string>();
    for (const [i, { policy, counter }] of (this.request?.charged?.charge.buckets ?? []).entries()) {
      // As in the metrics, see observers/request-metrics.ts.
      if (!counter.forUnproven && this.request?.spent?.states[i] !== null) counting.add(policy.name);
    }
    const names = this.request?.match.cover?.policies.map(({ name }) => name) ?? [];
    return {
      policies: names.filter((name) => counting.has(name)),
      uncounted: names.filter((name) => !counting.has(name)),
    };
  }

  #identities(): Record<string, string> {
    const identities: Record<string, string> = {};
    for (const [i, { name }] of (this.request?.match.cover?.identifiers ?? []).entries()) {
      const digest = this.request?.identified?.identities[i]?.digest;
      if (digest !== undefined) identities[name] = digest;
    }
    return identities;
  }

  /** Returns the names of identifiers whose credential was unproven, so that somebody else was charged for it. */
  #unproven(): string[] {
    const names: string[] = [];
    for (const [i, { policy, unlessProven }] of (this.request?.charged?.charge.buckets ?? []).entries()) {
      // If the state of the bucket is null, the store knows a proof that this process did not know.
      if (unlessProven.length === 0 || this.request?.spent?.states[i] === null) continue;
      const { unless, identifier, onlyFor } = policy;
      const unproven = onlyFor === null ? [unless ?? identifier] : this.#presentedAmong(onlyFor.keys);
      for (const { name } of unproven) if (!names.includes(name)) names.push(name);
    }
    return names;
  }

  #presentedAmong(keys: readonly Identifier[]): readonly Identifier[] {
    const identifiers = this.request?.match.cover?.identifiers ?? [];
    return keys.filter(
      (key) => (this.request?.identified?.identities[identifiers.indexOf(key)] ?? null) !== null,
    );
  }

  #plan(): string | null {
    const plan = this.request?.charged?.plan ?? null;
    return plan !== null && PLAN.test(plan) ? plan : null;
  }

  #proves(status: number | null): boolean {
    const isAnswer = this.upstreamMs !== null && status !== null && status >= 200 && status < 300;
    return isAnswer && (this.request?.identified?.provable ?? null) !== null;
  }

  /** Content-Length; for a chunked body the number of bytes read during the request. */
  #requestBytes(): number {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = this.#req.headers;
    return coding === undefined ? Number(length) || 0 : this.#socket.bytesRead - this.#read;
  }
}

/** The decision of the policies. */
function decisionIn(request: LoggedFacts | null): LoggedDecision {
  if (request === null) return 'undecided';
  if (request.allowed !== null) return 'allow';
  return request.passedAt === null ? 'undecided' : 'uncovered';
}

function pathOf(url: string): string {
  const queryAt = url.indexOf('?');
  return queryAt < 0 ? url : url.slice(0, queryAt);
}

function rounded(ms: Millis | null): Millis | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}
