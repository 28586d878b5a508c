/**
 * A request about which another proxy asks, and which it forwards itself: the same as one of our own up to the decision,
 * and then a reply that says yes, with the limit headers, or what the client is to be told.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import {
  assignExchange,
  type ClientConnection,
  type ClientResponse,
  type Exchange,
} from '#gateway/http/client-connection.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { AccessEntry } from '#gateway/observe/access-log/access-entry.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import { denialReply } from '#gateway/reply/denial.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { headersOf, type OwnReply, sendOwn } from '#gateway/reply/own-reply.ts';
import { type LimitedParts, LimitedRequest } from '#gateway/request/limited-request.ts';
import { learn } from '#gateway/request/prove.ts';
import type { Arrival } from '#gateway/request/request.ts';
import { chargeOf } from '#gateway/request/spend.ts';
import { type Dialect, methodProblem, questionOf } from './question.ts';

interface CheckedParts extends LimitedParts {
  readonly upstream: Upstream;
}

export interface CheckedOptions {
  readonly isCredentialProven: boolean;
  /** A proxy asks in a way that cannot be answered. @param reason what is wrong with its configuration */
  readonly onBadQuestion: (reason: string) => void;
}

export const UNTRUSTED =
  'the address that asks is not in GATEWAY_TRUSTED_PROXIES; add it, or ask from one that is';

export class CheckedRequest extends LimitedRequest implements Exchange {
  readonly req: IncomingRequest;
  readonly connection: ClientConnection;
  readonly entry: AccessEntry | null;
  readonly isUploading = false;
  readonly #res: ClientResponse;
  readonly #parts: CheckedParts;
  readonly #options: CheckedOptions;
  /** null until it is known. */
  #dialect: Dialect | null = null;

  constructor({ connection, req, res, entry }: Arrival, parts: CheckedParts, options: CheckedOptions) {
    super(parts);
    this.connection = connection;
    this.req = req;
    this.entry = entry;
    this.#res = res;
    this.#parts = parts;
    this.#options = options;
    assignExchange(res, this);
  }

  override run(): void {
    const { req } = this;
    const question = this.connection.origin.trusted
      ? questionOf(req.method ?? '', req.url ?? '', req.rawHeaders)
      : ({ ok: false, reason: UNTRUSTED } as const);
    if (!question.ok) {
      this.#options.onBadQuestion(question.reason);
      this.#parts.refusals.malformed(this, question.reason);
      return;
    }
    // From here on it is the request that it asks about; how its reply is framed has been decided before.
    req.method = question.method;
    req.url = question.target;
    if (question.dialect !== 'replied') this.#dialect = question.dialect;
    const problem = methodProblem(question.method);
    if (problem !== null) this.#parts.refusals.malformed(this, problem);
    else if (question.dialect === 'replied') this.#learn(question.status);
    else super.run();
  }

  /** As from a reply that passed through: does the credential of its request work? Nothing is charged. */
  #learn(status: number): void {
    const { connection, req } = this;
    const { enforcement } = this.#parts;
    this.entry?.withdraw();
    const { table, options } = enforcement;
    const head = table.checkHead(req, connection.origin);
    const match = table.match(req.method ?? '', req.url ?? '');
    if (head.ok && match.ok && match.cover !== null) {
      this.head = head;
      this.target = match.target;
      const charged = chargeOf(enforcement, match.cover, this);
      if (charged !== null && typeof charged !== 'string') learn(options.limiter, charged.identified, status);
    }
    this.pass([]);
  }

  override get isVouchedFor(): boolean {
    return this.#options.isCredentialProven;
  }

  protected pass(added: readonly string[]): void {
    this.finish();
    const res = this.#res;
    if (res.headersSent || res.destroyed) return;
    res.writeHead(200, ['Content-Length', '0', ...(this.closes ? ['Connection', 'close'] : []), ...added]);
    res.end();
    discardBody(this.req);
  }

  answer(reply: OwnReply): void {
    // What is malformed is the client's; the connection is the proxy's.
    const told = { ...reply, close: this.closes };
    if (this.#dialect === 'auth-request') this.#forbid(told);
    else sendOwn(this.req, this.#res, told);
  }

  override deny(violated: readonly Violation[], decision: string): void {
    const { req, cors, closes } = this;
    const framing = { cors, close: closes, decision };
    if (this.#dialect === 'auth-request') {
      this.#forbid(denialReply(violated, framing));
    } else this.#parts.enforcement.denials.write(req, this.#res, violated, framing);
  }

  /** NGINX takes 403, and reads nothing but header fields: the reply itself stands in them. */
  #forbid(reply: OwnReply): void {
    const res = this.#res;
    if (res.headersSent || res.destroyed) return;
    const { status } = ERRORS[reply.code];
    if (this.entry !== null) this.entry.status = status;
    const fields = ['x-gateway-status', String(status), 'x-gateway-body', reply.bodyBytes];
    res.writeHead(403, [...headersOf({ ...reply, bodyBytes: '' }), ...fields]).end();
    discardBody(this.req);
  }

  get closes(): boolean {
    return this.#parts.upstream.draining;
  }

  get client(): Client | null {
    return this.connection.client;
  }

  get isClosed(): boolean {
    return this.isDone;
  }

  close(): void {
    this.finish();
  }

  onDrain(): void {
    // A reply is one write, and nothing waits behind it.
  }

  onTick(): void {
    // Nothing is read for it, or sent on.
  }
}
