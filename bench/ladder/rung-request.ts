/** A request to a rung. It takes the steps of a Story up to the last one of the rung, which denies it. */
import { prefersHtml } from '#gateway/http/accept.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import type { DateField } from '#gateway/http/date-field.ts';
import type { SharedReply } from '#gateway/http/shared-reply.ts';
import { decide, knownViolations } from '#gateway/limiter/decision.ts';
import type { LimitListener, Spent } from '#gateway/limiter/limiter.ts';
import type { Violation } from '#gateway/limiter/verdict.ts';
import { DECISION_ID_LENGTH } from '#gateway/refusals/decision-ids.ts';
import { limitRefusal } from '#gateway/refusals/refusal.ts';
import { type Cors, UNREAD } from '#gateway/reply/cors.ts';
import type { DenialWriter } from '#gateway/reply/denial.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import type { Caller } from '#gateway/request/reading/caller.ts';
import { locate, NOWHERE, type ReadableRequest, read } from '#gateway/request/reading/read.ts';
import type { Step } from './rungs.ts';

/** Stands for the id of a refusal. */
export const DECISION = 'rung'.padEnd(DECISION_ID_LENGTH, '~');

export interface Parts {
  readonly steps: ReadonlySet<Step>;
  /** The reply of a rung that makes none. */
  readonly shared: SharedReply;
  readonly date: DateField;
  readonly enforcement: Enforcement;
  readonly denials: DenialWriter;
}

export class RungRequest implements ReadableRequest, LimitListener, Exchange {
  readonly connection: ClientConnection;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly client = null;
  readonly call = null;
  readonly isClosed = false;
  readonly isVouchedFor = false;
  readonly sentBody = null;
  head = NOWHERE.head;
  match = NOWHERE.match;
  host = NOWHERE.host;
  presented = NOWHERE.presented;
  cors: Cors = UNREAD;
  readonly #parts: Parts;

  constructor(connection: ClientConnection, req: ClientRequest, res: ClientResponse, parts: Parts) {
    this.connection = connection;
    this.req = req;
    this.res = res;
    this.#parts = parts;
    res.exchange = this;
  }

  get caller(): Caller {
    return this.#parts.enforcement.callerOf(this.connection.origin, this.head.forwardedFor);
  }

  run(): void {
    const { enforcement, steps } = this.#parts;
    if (!steps.has('match')) {
      this.#end();
      return;
    }
    const located = locate(enforcement.table, this.req, this.connection.origin);
    if (located.kind === 'malformed') throw new Error(located.reason);
    this.head = located.head;
    this.match = located.match;
    this.host = located.host;
    this.presented = located.presented;
    this.cors = enforcement.table.cors.on(this.req.method ?? '', located.match.path, this.req.rawHeaders);
    if (!steps.has('identify')) {
      this.#end();
      return;
    }
    const reading = read(this, enforcement.options);
    if (reading.kind !== 'charged') throw new Error(`the request is ${reading.kind}`);
    if (!steps.has('decide')) {
      this.#end();
      return;
    }
    const { limiter } = enforcement.options;
    const exhausted = limiter.knownExhausted(reading.charge);
    if (exhausted === null) limiter.spend(reading.charge, this);
    else this.#deny(knownViolations(exhausted));
  }

  onSpent(spent: Spent, position: number): void {
    const decision = decide(spent, position);
    if (decision.kind === 'deny') {
      this.#deny(decision.violated);
      return;
    }
    // The limit is not reached yet.
    this.res.writeHead(200, []);
    this.res.end();
  }

  onStoreUnavailable(): void {
    this.res.destroy();
  }

  close(): void {}

  #deny(violated: readonly Violation[]): void {
    const { denials, enforcement, steps } = this.#parts;
    if (!steps.has('text')) {
      this.#end();
      return;
    }
    const page = prefersHtml(this.req.rawHeaders) ? enforcement.table.page : null;
    const refusal = limitRefusal(violated, [], 'store', enforcement.options.randomInt);
    const framing = { cors: this.cors, close: false, page, decision: null };
    denials.write(this.req, this.res, refusal, framing, DECISION);
  }

  #end(): void {
    const { shared, date } = this.#parts;
    this.res.endShared(shared, DECISION, date.text());
  }
}
