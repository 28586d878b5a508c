/** A request inside the application: decided as in the gateway, then handled by the application. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { EXPOSE_HEADER, EXPOSED_LIMITS, exposesAll, OVER_HEADER } from '#gateway/http/header-names.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import { haveSameHost } from '#gateway/http/host.ts';
import { discardStream } from '#gateway/http/lingering-close.ts';
import type { Origins } from '#gateway/http/request-origin.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import {
  type AnsweredRequest,
  headersOf,
  type OwnReply,
  recordOf,
  sendOwn,
} from '#gateway/reply/own-reply.ts';
import { isPreflight, preflightHeaders, sendPreflight } from '#gateway/reply/preflight.ts';
import { type LimitedParts, LimitedRequest, type Source } from '#gateway/request/limited-request.ts';
import { learn, noteVisit } from '#gateway/request/reading/prove.ts';
import type { Sent } from '#gateway/request/reading/read.ts';
import { framingOf } from '#gateway/request/refuse.ts';
import type { Millis } from '#shared/clock.ts';

interface InnerParts extends LimitedParts {
  readonly origins: Origins;
  /** How long a request whose client has left keeps its place in flight while the application works on it. */
  readonly leftMsMax: Millis;
}

export class InnerRequest extends LimitedRequest {
  readonly req: Sent;
  readonly connection: Source;
  readonly entry = null;
  readonly client = null;
  readonly closes = false;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #parts: InnerParts;
  /** Receives the result of the decision. null once it was called. */
  #onDecided: ((isAdmitted: boolean) => void) | null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    parts: InnerParts,
    onDecided: (isAdmitted: boolean) => void,
  ) {
    super(parts);
    this.#req = req;
    this.#res = res;
    this.#parts = parts;
    this.#onDecided = onDecided;
    this.req = sentAs(req);
    this.connection = { origin: parts.origins.of(req.socket) };
    res.once('close', () => this.#onClose());
  }

  override run(): void {
    // `OPTIONS *` asks about the server, not about a resource (RFC 9110 9.3.7).
    if (this.req.method === 'OPTIONS' && this.req.url === '*') this.pass([], null);
    else super.run();
  }

  protected pass(added: readonly string[], reservation: Reservation | null): void {
    this.finish();
    const res = this.#res;
    if (res.destroyed || res.headersSent) {
      reservation?.close();
      this.#settle(false);
      return;
    }
    setOver(this.#req, this.over);
    for (let i = 0; i < added.length; i += 2) res.setHeader(added[i] ?? '', added[i + 1] ?? '');
    // Added to values that the application has set before. Values that it sets later replace these.
    if (
      added.length > 0 &&
      this.cors.exposesLimits &&
      !exposesAll(String(res.getHeader(EXPOSE_HEADER) ?? ''))
    )
      res.appendHeader(EXPOSE_HEADER, EXPOSED_LIMITS);
    // The application gets the target that a gateway would forward, unless a router has already removed its mount path.
    const { target } = this.match;
    if (target !== '' && this.#req.url === this.req.url) this.#req.url = target;
    res.once('close', () => this.#onReplyClosed(reservation));
    this.#settle(true);
  }

  override answersPreflight(decision: string | null): boolean {
    const { method, rawHeaders } = this.req;
    if (this.cors.origin === null || !isPreflight(method, rawHeaders)) return false;
    const framing = framingOf(this, decision);
    const res = this.#res;
    if (this.#req.httpVersionMajor < 2)
      this.#answer((req) => sendPreflight({ ...req, rawHeaders }, res, framing));
    else if (!res.destroyed && !res.headersSent) {
      res.writeHead(204, recordOf(preflightHeaders(framing, rawHeaders)));
      res.end();
    }
    this.#settle(false);
    return true;
  }

  answer(reply: OwnReply): void {
    const res = this.#res;
    if (!res.destroyed && !res.headersSent) {
      if (this.#req.httpVersionMajor < 2) this.#answer((req) => sendOwn(req, res, reply));
      else {
        res.writeHead(reply.status, recordOf(headersOf({ ...reply, close: false })));
        res.end(reply.body);
      }
    }
    this.#settle(false);
  }

  #answer(send: (req: AnsweredRequest) => void): void {
    const { method, complete, socket } = this.#req;
    // Frameworks put a parsed body into `req.body`.
    send({ method, complete, socket, body: null });
    discardStream(this.#req);
  }

  /** Called when the reply has ended or the client has left. */
  #onReplyClosed(reservation: Reservation | null): void {
    const res = this.#res;
    if (res.headersSent) {
      const { limiter } = this.#parts.enforcement.options;
      if (this.identified !== null) learn(limiter, this.identified, res.statusCode);
      noteVisit(limiter, this, res.statusCode);
      reservation?.conclude(res.statusCode, reservation.awaitsReply ? rawHeadersOf(res) : null);
      reservation?.close();
      return;
    }
    reservation?.conclude('unknown');
    // A request whose client has left stays in flight while the application works on it.
    if (reservation?.isHeld === true) whenEnded(res, this.#parts.leftMsMax, () => reservation.close());
  }

  /**
   * If the client leaves before the decision, the request is not admitted, and its charge is returned where possible.
   */
  #onClose(): void {
    this.finish();
    this.#settle(false);
  }

  #settle(isAdmitted: boolean): void {
    const onDecided = this.#onDecided;
    this.#onDecided = null;
    onDecided?.(isAdmitted);
  }
}

/**
 * Calls back when the application ends a response whose connection is closed, or after a time. Node emits no event for
 * this, so `end` is replaced.
 */
function whenEnded(res: ServerResponse, msMax: Millis, then: () => void): void {
  const { end } = res;
  const timer = setTimeout(then, msMax).unref();
  res.end = (...args: unknown[]) => {
    clearTimeout(timer);
    then();
    return Reflect.apply(end, res, args);
  };
}

const OVER: ReadonlySet<string> = new Set([OVER_HEADER]);

/** Sets the header that names the marking policies, and removes copies that the client has sent. */
function setOver(req: IncomingMessage, over: string | null): void {
  const { headers, rawHeaders } = req;
  if (headers[OVER_HEADER] !== undefined) {
    delete headers[OVER_HEADER];
    // HTTP/2 requests have no such property.
    delete (req.headersDistinct as typeof req.headersDistinct | undefined)?.[OVER_HEADER];
    dropNominated(rawHeaders, OVER);
  }
  if (over === null) return;
  headers[OVER_HEADER] = over;
  rawHeaders.push(OVER_HEADER, over);
}

function rawHeadersOf(res: ServerResponse): string[] {
  return Object.entries(res.getHeaders()).flatMap(([name, value]) =>
    [value ?? []].flat().flatMap((one) => [name, String(one)]),
  );
}

/** Returns the request as the client sent it, in the form of HTTP/1.1. */
function sentAs(req: IncomingMessage & { readonly originalUrl?: string }): Sent {
  const { method, rawHeaders, httpVersion } = req;
  // Express removes the mount path of a router from `url` and keeps the original here.
  const url = req.originalUrl ?? req.url;
  if (req.httpVersionMajor < 2) return url === req.url ? req : { method, url, rawHeaders, httpVersion };
  return { method, url, rawHeaders: withHost(rawHeaders), httpVersion: '1.1' };
}

/**
 * Converts the pseudo-header :authority of HTTP/2 (RFC 9113 8.3.1) to Host. If the request also has another Host, both are
 * returned, and the request is refused.
 */
function withHost(rawHeaders: readonly string[]): string[] {
  const fields: string[] = [];
  let authority: string | null = null;
  let host: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (name === ':authority') authority = value;
    if (name === 'host') host = value;
    if (!name.startsWith(':')) fields.push(name, value);
  }
  const isNamed = host !== null && (authority === null || haveSameHost(host, authority));
  return isNamed ? fields : [...fields, 'Host', authority ?? ''];
}
