/** A request that Envoy's rate limit filter asks about over gRPC. */

import type { AccessEntry } from '#gateway/observe/access-log/access-entry.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { headersOf, type OwnReply } from '#gateway/reply/own-reply.ts';
import {
  type LimitedParts,
  LimitedRequest,
  type Sent,
  type Source,
} from '#gateway/request/limited-request.ts';

export interface RateLimitResponse {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  readonly statuses: readonly { readonly code: 'OK' | 'OVER_LIMIT' }[];
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[];
  readonly rawBody: Uint8Array;
}

const NO_BODY = new Uint8Array();
/** Fields that describe the gateway's own message, which Envoy does not forward. */
const NOT_FORWARDED: ReadonlySet<string> = new Set(['content-length', 'connection']);

export class RateLimitCall extends LimitedRequest {
  readonly req: Sent;
  readonly connection: Source;
  readonly entry: AccessEntry | null;
  readonly client = null;
  readonly closes = false;
  readonly #isVouchedFor: boolean;
  readonly #reply: (response: RateLimitResponse) => void;

  constructor(
    parts: LimitedParts,
    {
      req,
      connection,
      isVouchedFor,
    }: { readonly req: Sent; readonly connection: Source; readonly isVouchedFor: boolean },
    reply: (response: RateLimitResponse) => void,
    entry: AccessEntry | null,
  ) {
    super(parts);
    this.req = req;
    this.connection = connection;
    this.#isVouchedFor = isVouchedFor;
    this.entry = entry;
    this.#reply = reply;
  }

  override get isVouchedFor(): boolean {
    return this.#isVouchedFor;
  }

  protected pass(added: readonly string[]): void {
    this.finish();
    this.#send('OK', added, NO_BODY);
  }

  answer(reply: OwnReply): void {
    if (this.entry !== null) this.entry.status = ERRORS[reply.code].status;
    this.#send('OVER_LIMIT', headersOf({ ...reply, close: false }), Buffer.from(reply.body));
  }

  #send(code: 'OK' | 'OVER_LIMIT', headers: readonly string[], rawBody: Uint8Array): void {
    const responseHeadersToAdd: { key: string; value: string }[] = [];
    for (let i = 0; i < headers.length; i += 2) {
      const key = (headers[i] ?? '').toLowerCase();
      if (!NOT_FORWARDED.has(key)) responseHeadersToAdd.push({ key, value: headers[i + 1] ?? '' });
    }
    this.entry?.end();
    this.#reply({ overallCode: code, statuses: [{ code }], responseHeadersToAdd, rawBody });
  }
}
