/**
 * A request that another proxy asks about, and forwards itself. It is decided like a request to the gateway. The reply
 * is either 200 with the limit headers, or the refusal that the proxy should send to the client.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse, Exchange } from '#gateway/http/client-exchange.ts';
import { privateHeaderProblem } from '#gateway/http/header-filter.ts';
import { OVER_HEADER } from '#gateway/http/header-names.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { SentBody } from '#gateway/identity/body-field.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Refusal } from '#gateway/refusals/refusal.ts';
import { NO_CORS } from '#gateway/reply/cors.ts';
import { type Framing, headersOf, type OwnReply, sendOwn } from '#gateway/reply/own-reply.ts';
import { refusalReply } from '#gateway/reply/refusal-reply.ts';
import { NO_BANS } from '#gateway/request/reading/listing.ts';
import { learn, tellGroups } from '#gateway/request/reading/prove.ts';
import { read } from '#gateway/request/reading/read.ts';
import type { Arrival, ForwardingParts } from '#gateway/request/request.ts';
import { Story, type Way } from '#gateway/request/story.ts';
import { authorizationRequestOf, type Dialect, methodProblem } from './authorization-request.ts';

/** How the requests of the proxies are answered. */
export interface CheckedOptions {
  readonly isCredentialProven: boolean;
  /**
   * Called if a proxy sent an authorization request that the gateway cannot answer.
   *
   * @param reason the mistake in the proxy's configuration
   */
  readonly onBadRequest: (reason: string) => void;
}

const UNTRUSTED = 'the address of this proxy is not in GATEWAY_TRUSTED_PROXIES; add it';

/** With this Content-Type, proxies can tell a refusal by the gateway from an error of their own. */
const PROBE_HEADERS = ['Content-Type', 'application/problem+json'] as const;

export class CheckedRequest implements Way, Exchange {
  readonly isAsked = true;
  readonly story: Story;
  readonly req: ClientRequest;
  readonly connection: ClientConnection;
  readonly entry: AccessEntry | null;
  readonly call = null;
  readonly #res: ClientResponse;
  readonly #parts: ForwardingParts;
  readonly #options: CheckedOptions;
  /** null until the proxy's request is read. */
  #dialect: Dialect | null = null;

  constructor({ connection, req, res, entry }: Arrival, parts: ForwardingParts, options: CheckedOptions) {
    this.connection = connection;
    this.req = req;
    this.entry = entry;
    this.#res = res;
    this.#parts = parts;
    this.#options = options;
    this.story = new Story(this, parts);
    res.exchange = this;
  }

  run(): void {
    const { req } = this;
    const { usesHosts } = this.#parts.enforcement.table;
    const asked = this.connection.origin.trusted
      ? authorizationRequestOf(req.method ?? '', req.url ?? '', req.rawHeaders, usesHosts)
      : UNTRUSTED;
    if (typeof asked === 'string') {
      this.#options.onBadRequest(asked);
      this.story.refuse({ kind: 'malformed', reason: asked });
      return;
    }
    // From now on `req` is the request that the proxy describes. The proxy's own message is already framed.
    req.method = asked.method;
    req.url = asked.target;
    this.#dialect = asked.dialect;
    // A proxy that reports a reply may send the headers that it has added to the request.
    const isReply = asked.dialect === 'replied';
    const problem = methodProblem(asked.method) ?? (isReply ? null : privateHeaderProblem(req.rawHeaders));
    if (problem !== null) this.story.refuse({ kind: 'malformed', reason: problem });
    else if (isReply) this.#learn(asked.status);
    else this.story.begin();
  }

  /** Learns from a reply whether the credential of its request works. Nothing is charged. */
  #learn(status: number): void {
    const { story } = this;
    this.entry?.withdraw();
    const { options } = this.#parts.enforcement;
    if (story.locate() === null) {
      const reading = read(story, { ...options, bans: NO_BANS });
      const isRead = reading.kind === 'charged' || reading.kind === 'uncovered';
      if (isRead && reading.identified !== null) learn(options.limiter, reading.identified, status);
      tellGroups(options.limiter, story, status);
    }
    this.pass([]);
  }

  /** Answers with a refusal, because after a 2xx the proxy would forward the probe. */
  answerProbe(seen: string): void {
    this.#answer({
      status: 403,
      title: 'Forbidden',
      body: seen,
      headers: PROBE_HEADERS,
      cors: NO_CORS,
      close: false,
    });
  }

  /** Nobody sends the body to the decision listener. */
  receiveBody(then: (body: SentBody) => void): void {
    then({ kind: 'absent' });
  }

  get isVouchedFor(): boolean {
    return this.#options.isCredentialProven;
  }

  /** NGINX gets no page, because it reads only the header section and a page does not fit into that. */
  get takesPages(): boolean {
    return this.#dialect !== 'auth-request';
  }

  /** The gateway may never hear of the reply, so a client that is admitted has visited. */
  pass(added: readonly string[]): void {
    const { story } = this;
    if (this.#dialect !== 'replied') tellGroups(this.#parts.enforcement.options.limiter, story, 200);
    story.finish();
    const res = this.#res;
    if (res.headersSent || res.destroyed) return;
    const fields = ['Content-Length', '0', ...(this.closes ? ['Connection', 'close'] : []), ...added];
    const marks = story.allowed?.marks ?? [];
    if (marks.length > 0) fields.push(OVER_HEADER, marks.map(({ name }) => name).join(', '));
    res.writeHead(200, fields);
    res.end();
    discardBody(this.req.body);
  }

  refuse(refusal: Refusal, framing: Framing): void {
    const { decision } = framing;
    const isShared = refusal.kind === 'limit' && decision !== null && this.#dialect !== 'auth-request';
    if (isShared) this.#parts.denials.write(this.#res, refusal, framing, decision);
    else this.#answer(refusalReply(refusal, framing));
  }

  #answer(reply: OwnReply): void {
    // Keep the proxy's connection open: a malformed request is the client's.
    const kept = { ...reply, close: this.closes };
    if (this.#dialect === 'auth-request') this.#forbid(kept);
    else sendOwn(this.#res, kept);
  }

  /** NGINX accepts only 403 and reads only the header section, so status and body go into header fields. */
  #forbid(reply: OwnReply): void {
    const { status, body } = reply;
    if (this.#res.headersSent || this.#res.destroyed) return;
    if (this.entry !== null) this.entry.status = status;
    const fields = ['x-gateway-status', String(status), 'x-gateway-body', body];
    this.#res.writeHead(403, [...headersOf({ ...reply, body: '' }), ...fields]);
    this.#res.end();
    discardBody(this.req.body);
  }

  get closes(): boolean {
    return this.#parts.upstream.draining;
  }

  get client(): Client | null {
    return this.connection.client;
  }

  get isClosed(): boolean {
    return this.story.isOver;
  }

  close(): void {
    this.story.close();
  }
}
