/**
 * Refuses requests. Each refusal is counted, recorded for `floodgate why`, named in the access log and answered, in
 * this order.
 */

import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import { prefersHtml } from '#gateway/http/accept.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { Decisions, Describe } from '#gateway/refusals/decisions.ts';
import { reasonOf } from '#gateway/refusals/reasons.ts';
import type { Reason, Recorded, Refusal } from '#gateway/refusals/refusal.ts';
import { type Cors, UNREAD } from '#gateway/reply/cors.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import { refusalReply } from '#gateway/reply/refusal-reply.ts';
import type { Enforcement } from './enforcement.ts';
import type { Events, RequestFacts } from './events.ts';
import { addressSource, type Caller } from './reading/caller.ts';
import { NOWHERE } from './reading/read.ts';
import type { Refusable } from './story.ts';

interface RefusalsOptions {
  readonly enforcement: Enforcement;
  readonly events: Pick<Events, 'refused'>;
  readonly decisions: Decisions;
  /** Addresses of refused clients, if operators may see them. */
  readonly addresses: RefusedAddresses | null;
}

export class Refusals {
  readonly #options: RefusalsOptions;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  refuse(request: Refusable, refusal: Refusal): void {
    const { enforcement, events } = this.#options;
    events.refused(request, refusal);
    if (!request.finish()) return;
    const { way } = request;
    const reason = reasonOf(refusal);
    const record = reason.record?.(refusal, request.caller) ?? null;
    const decision = record === null ? null : this.#record(record, this.#describer(request), request.caller);
    const policy = refusal.kind === 'banned' ? null : (record?.policy ?? null);
    log(request, reason, decision, policy);
    way.refuse(refusal, {
      cors: corsOf(request, enforcement),
      // After a malformed request, nobody knows where the next one begins.
      close: way.closes || refusal.kind === 'malformed',
      page: way.takesPages && prefersHtml(request.req.rawHeaders) ? enforcement.table.page : null,
      decision,
    });
  }

  /**
   * Refuses a connection before any request on it is read.
   *
   * @param client null if the connection counted only for the total of the bound
   * @returns the reply for its client
   */
  connection(bound: Bound, refusal: BoundRefusal, client: Client | null, origin: RequestOrigin): OwnReply {
    const { enforcement } = this.#options;
    const { file } = enforcement.policies;
    const addressFrom = origin.isIntroduced ? 'PROXY header' : 'socket';
    const caller = enforcement.callerOf(origin, '');
    const refused = { kind: 'bound', bound, refusal, client } as const;
    const record = reasonOf(refused).record?.(refused, caller) ?? null;
    const describe = () => ({ method: '', target: '', addressFrom, file });
    const decision = record === null ? null : this.#record(record, describe, caller);
    return refusalReply(refused, { cors: UNREAD, close: true, page: null, decision });
  }

  /** @returns the id of the refusal */
  #record(record: Recorded, describe: Describe, caller: Caller): string {
    const { addresses, decisions } = this.#options;
    noteAddress(addresses, record.identity, caller);
    return decisions.add(record, describe);
  }

  #describer({ req, match, caller }: RequestFacts): Describe {
    const { policies, options } = this.#options.enforcement;
    return () => ({
      method: req.method ?? '',
      target: match.target,
      addressFrom: addressSource(caller, options.trust),
      file: policies.file,
    });
  }
}

/** Remembers the address of a refused client, if operators may see it. @param digest counted for it */
export function noteAddress(
  addresses: RefusedAddresses | null,
  digest: string,
  { address, table }: Caller,
): void {
  if (addresses !== null && address.isReadable && digest !== table.everyone.digest)
    addresses.note(digest, address.counted());
}

/** Decides what pages of other origins may read of a reply. */
export function corsOf({ req, match }: RequestFacts, { table: { cors } }: Enforcement): Cors {
  if (match === NOWHERE.match) return cors.unread(req.rawHeaders);
  return cors.on(req.method ?? '', match.path, req.rawHeaders);
}

/** @param id of the refusal; null if it has none @param policy that refused; null if none did */
function log(
  { entry }: RequestFacts,
  { logged }: Reason<never>,
  id: string | null,
  policy: string | null,
): void {
  if (entry === null) return;
  // The policies may have admitted the request before. The log then says so, and only the id is added.
  if (id !== null) entry.id = id;
  if (logged === undefined) return;
  entry.decision = logged;
  entry.policy = policy;
}
