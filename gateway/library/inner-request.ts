/** A request inside the application that answers it: decided as in the gateway, and then left to the application. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { EXPOSE_HEADER, EXPOSED_LIMITS, exposesAll } from '#gateway/http/header-names.ts';
import type { Origins } from '#gateway/http/request-origin.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { headersOf, type OwnReply, recordOf, sendOwn } from '#gateway/reply/own-reply.ts';
import {
  type LimitedParts,
  LimitedRequest,
  type Sent,
  type Source,
} from '#gateway/request/limited-request.ts';
import { learn } from '#gateway/request/prove.ts';
import type { Millis } from '#shared/clock.ts';

interface InnerParts extends LimitedParts {
  readonly origins: Origins;
  /** For so long the application may work for a client that has left, and keep its place in flight. */
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
  /** null: told. */
  #tell: ((isAdmitted: boolean) => void) | null;

  /** @param tell called once */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    parts: InnerParts,
    tell: (isAdmitted: boolean) => void,
  ) {
    super(parts);
    this.#req = req;
    this.#res = res;
    this.#parts = parts;
    this.#tell = tell;
    this.req = sentAs(req);
    this.connection = { origin: parts.origins.of(req.socket) };
    res.once('close', () => this.#onClose());
  }

  override run(): void {
    // Asks about the server, not about a resource (RFC 9110 9.3.7).
    if (this.req.method === 'OPTIONS' && this.req.url === '*') {
      this.cors = false;
      this.pass([], null);
    } else super.run();
  }

  protected pass(added: readonly string[], reservation: Reservation | null): void {
    this.finish();
    const res = this.#res;
    if (res.destroyed || res.headersSent) {
      reservation?.close();
      this.#told(false);
      return;
    }
    for (let i = 0; i < added.length; i += 2) res.setHeader(added[i] ?? '', added[i + 1] ?? '');
    // Beside what the application has set before; whatever it sets later replaces it.
    if (this.cors && added.length > 0 && !exposesAll(String(res.getHeader(EXPOSE_HEADER) ?? '')))
      res.appendHeader(EXPOSE_HEADER, EXPOSED_LIMITS);
    // Application and policies see the same path. Where a router has taken its part of it away, that is too late.
    if (this.target !== '' && this.#req.url === this.req.url) this.#req.url = this.#canonicalUrl();
    res.once('close', () => this.#onReplyClosed(reservation));
    this.#told(true);
  }

  answer(reply: OwnReply): void {
    const res = this.#res;
    if (!res.destroyed && !res.headersSent) {
      if (this.#req.httpVersionMajor < 2) sendOwn(this.#req, res, reply);
      else {
        res.writeHead(ERRORS[reply.code].status, recordOf(headersOf({ ...reply, close: false })));
        res.end(reply.body);
      }
    }
    this.#told(false);
  }

  /** With the slash at its end: no policy looks at it, but applications redirect by it. */
  #canonicalUrl(): string {
    const [path = ''] = (this.req.url ?? '').split('?', 1);
    const [canonical = ''] = this.target.split('?', 1);
    if (!path.endsWith('/') || canonical.endsWith('/')) return this.target;
    return `${canonical}/${this.target.slice(canonical.length)}`;
  }

  /** The reply is out, or its client is gone. */
  #onReplyClosed(reservation: Reservation | null): void {
    const res = this.#res;
    if (res.headersSent) {
      if (this.charged !== null)
        learn(this.#parts.enforcement.options.limiter, this.charged.identified, res.statusCode);
      reservation?.conclude(res.statusCode);
      reservation?.close();
      return;
    }
    reservation?.conclude('left');
    // The application does not stop working because its client has gone.
    if (reservation?.isHeld === true) whenEnded(res, this.#parts.leftMsMax, () => reservation.close());
  }

  /** Before it was decided: then it passes to nobody, and what it was charged is given back where that counts. */
  #onClose(): void {
    this.finish();
    this.#told(false);
  }

  #told(isAdmitted: boolean): void {
    const tell = this.#tell;
    this.#tell = null;
    tell?.(isAdmitted);
  }
}

/**
 * Calls back when the application ends a response whose connection is closed, or after a time. Node tells nobody of such
 * an end, so `end` itself is replaced.
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

/** What the client sent, as HTTP/1.1 would have it. */
function sentAs(req: IncomingMessage & { readonly originalUrl?: string }): Sent {
  const { method, rawHeaders, httpVersion } = req;
  // Express and its relatives take from the URL what a router is mounted on, and keep the whole here.
  const url = req.originalUrl ?? req.url;
  if (req.httpVersionMajor < 2) return url === req.url ? req : { method, url, rawHeaders, httpVersion };
  return { method, url, rawHeaders: withHost(rawHeaders), httpVersion: '1.1' };
}

/** HTTP/2 names the host in a field of its own (RFC 9113 8.3.1). */
function withHost(rawHeaders: readonly string[]): string[] {
  const fields: string[] = [];
  let authority = '';
  let hasHost = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (name === ':authority') authority = value;
    hasHost ||= name === 'host';
    if (!name.startsWith(':')) fields.push(name, value);
  }
  return hasHost ? fields : [...fields, 'Host', authority];
}
