/** Requests that a proxy describes in a message of its own protocol. They are decided like those over HTTP. */
import { privateHeaderProblem } from '#gateway/http/header-filter.ts';
import { OVER_HEADER } from '#gateway/http/header-names.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { AccessEntry, type LoggedRequest, type LoggedResponse } from '#gateway/observe/access-entry.ts';
import type { EntryLog } from '#gateway/observe/log-line.ts';
import { headersOf, type OwnReply } from '#gateway/reply/own-reply.ts';
import { type LimitedParts, LimitedRequest, type Source } from '#gateway/request/limited-request.ts';
import { probeReply } from '#gateway/request/probe.ts';
import { noteVisit } from '#gateway/request/reading/prove.ts';
import type { Sent } from '#gateway/request/reading/read.ts';
import { type BadAuthorizationRequest, type CheckedOptions, methodProblem } from './authorization-request.ts';
import type { Described } from './descriptor.ts';

export interface Answer {
  /** HTTP status. 200 means that the request may pass. */
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** Header fields that the proxy should add to the request, alternating names and values. */
  readonly requestHeaders: readonly string[];
  /** UTF-8. Each code unit of the string stands for one byte. */
  readonly body: string;
}

export interface DescribedOptions extends CheckedOptions {
  readonly parts: LimitedParts;
  readonly accessLog: EntryLog | null;
}

/** @param reply called once, even if the description is refused */
export function decideDescribed(
  described: Described | BadAuthorizationRequest,
  origin: RequestOrigin,
  options: DescribedOptions,
  reply: (answer: Answer) => void,
): void {
  const { method, target, rawHeaders } = described.ok ? described : NOTHING;
  // The request is checked as HTTP/1.0, which needs no Host field.
  const req: Sent = { method, url: target, rawHeaders, httpVersion: '1.0' };
  const request = new DescribedRequest(req, { origin }, options, reply);
  const problem = described.ok
    ? (methodProblem(method) ?? privateHeaderProblem(rawHeaders))
    : described.reason;
  if (!described.ok && described.by === 'proxy') options.onBadRequest(described.reason);
  if (problem === null) request.run();
  else options.parts.refusals.malformed(request, problem);
}

const NOTHING: Omit<Described, 'ok'> = { method: '', target: '', rawHeaders: [] };
/** Header fields that describe the gateway's message to the proxy, so they are not meant for the client. */
const NOT_FORWARDED: ReadonlySet<string> = new Set(['content-length', 'connection']);

class DescribedRequest extends LimitedRequest {
  readonly req: Sent;
  readonly connection: Source;
  readonly entry: AccessEntry | null;
  readonly client = null;
  readonly closes = false;
  readonly #options: DescribedOptions;
  readonly #reply: (answer: Answer) => void;

  constructor(req: Sent, connection: Source, options: DescribedOptions, reply: (answer: Answer) => void) {
    super(options.parts);
    this.req = req;
    this.connection = connection;
    this.#options = options;
    this.#reply = reply;
    this.entry = entryFor(req, options);
  }

  override get isVouchedFor(): boolean {
    return this.#options.isCredentialProven;
  }

  /** The reply is always JSON: messages must be short. */
  override get page(): null {
    return null;
  }

  protected override answersProbe(token: string): boolean {
    const body = probeReply(this, token, this.#options.parts.enforcement, true);
    if (body !== null) this.#send(403, [], body);
    return body !== null;
  }

  /** The gateway does not hear of the reply, so a client that is admitted has visited. */
  protected pass(added: readonly string[]): void {
    noteVisit(this.#options.parts.enforcement.options.limiter, this, 200);
    this.finish();
    this.#send(200, added, '');
  }

  answer(reply: OwnReply): void {
    this.#send(reply.status, headersOf({ ...reply, close: false }), reply.bodyBytes);
  }

  #send(status: number, all: readonly string[], body: string): void {
    const headers: string[] = [];
    for (let i = 0; i < all.length; i += 2) {
      const name = (all[i] ?? '').toLowerCase();
      if (!NOT_FORWARDED.has(name)) headers.push(name, all[i + 1] ?? '');
    }
    if (this.entry !== null && status !== 200) this.entry.status = status;
    this.entry?.end();
    const requestHeaders = this.over === null ? [] : [OVER_HEADER, this.over];
    this.#reply({ status, headers, requestHeaders, body });
  }
}

function entryFor(
  { method, url, rawHeaders }: Sent,
  { accessLog, parts }: DescribedOptions,
): AccessEntry | null {
  if (accessLog === null || !accessLog.takes()) return null;
  const { clock, wallClock } = parts.enforcement.options;
  return new AccessEntry(accessLog, { ...UNMEASURED, method, url, rawHeaders }, ANSWERED, clock, wallClock);
}

/** Stand-ins for socket and response: no byte counts are logged, and a log entry ends with the answer. */
const UNMEASURED: Omit<LoggedRequest, 'rawHeaders'> = {
  headers: {},
  socket: { bytesWritten: 0, bytesRead: 0, destroyed: false, once: () => undefined, off: () => undefined },
};
const ANSWERED: LoggedResponse = {
  headersSent: true,
  statusCode: 200,
  writableFinished: true,
  once: () => undefined,
};
