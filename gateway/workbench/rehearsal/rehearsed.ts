/** The results of a rehearsal by step: identified, decided, and with the reply. */
import { isClientRoute } from '#gateway/http/header-names.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Decision, Verdict } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { denialReply, listedReply } from '#gateway/reply/denial.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import { headersOf } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import type { ChargedTo } from '#gateway/request/reading/charged-to.ts';

interface Malformed {
  readonly kind: 'malformed';
  readonly status: number;
  readonly reason: string;
}

/** A request whose client or route matches an entry of the list deny. */
interface ListedRequest {
  readonly kind: 'listed';
  readonly path: string;
  readonly cover: Cover | null;
  readonly entry: ListEntry;
  readonly status: number;
  /** Headers of the reply, alternating names and values. */
  readonly headers: readonly string[];
  /** All identities of the request. */
  readonly identities: () => readonly Identity[];
}

/** A request that no policy counts. */
interface Uncovered {
  readonly kind: 'uncovered';
  readonly path: string;
  /** Policies whose route matches, but none of which counts the client; null if there are none. */
  readonly cover: Cover | null;
  /** The entry of the list allow that matches the client; null if there is none. */
  readonly allowedBy: ListEntry | null;
  /** All identities of the request. */
  readonly identities: () => readonly Identity[];
  /** The identity whose ban refuses the request; null if there is none. */
  readonly ban: Identity | null;
}

interface Covered {
  readonly kind: 'covered';
  readonly path: string;
  readonly cover: Cover;
  readonly charged: ChargedTo;
  /** All identities of the request. */
  readonly identities: () => readonly Identity[];
  /** The identity whose ban refuses the request; null if there is none. */
  readonly ban: Identity | null;
}

/** A request for which nothing is charged. */
type Uncharged = Malformed | ListedRequest | Uncovered;

/** A request before anything is charged for it. */
export type ReadRequest = Uncharged | Covered;

/** A decision without its reply. */
export type Weighed = Uncharged | WeighedRequest;

export type Rehearsed = Uncharged | DecidedRequest;

export interface DecidedRequest {
  readonly kind: 'allow' | 'deny';
  readonly path: string;
  /** The policies that apply, in the order of the file. */
  readonly policies: readonly Policy[];
  readonly charged: ChargedTo;
  readonly spent: Spent;
  /** Headers of the reply, alternating names and values. */
  readonly headers: readonly string[];
  /** The denying policies; empty if the request is allowed. */
  readonly violated: readonly Verdict[];
  readonly shadowDenials: readonly Policy[];
}

export interface WeighedRequest {
  readonly kind: 'decided';
  readonly path: string;
  readonly cover: Cover;
  readonly charged: ChargedTo;
  readonly spent: Spent;
  readonly decision: Decision;
}

export function malformed(reason: string): Malformed {
  return { kind: 'malformed', status: ERRORS.gateway_bad_request.status, reason };
}

export function listedRequest(
  path: string,
  entry: ListEntry,
  identities: () => readonly Identity[],
  page: Page | null,
): ListedRequest {
  const reply = listedReply(entry, { cors: isClientRoute(path), close: false, decision: null, page });
  const { status } = ERRORS[reply.code];
  return { kind: 'listed', path, cover: null, entry, status, headers: headersOf(reply), identities };
}

/** @param page for a browser that loads a page; null for a JSON reply */
export function tell(
  { path, cover, charged, spent, decision }: WeighedRequest,
  page: Page | null,
): DecidedRequest {
  const policies = applyingOf(cover, charged);
  if (decision.kind === 'allow') {
    return {
      kind: 'allow',
      path,
      policies,
      charged,
      spent,
      headers: limitHeaders(decision.verdicts),
      violated: [],
      shadowDenials: decision.shadowDenials,
    };
  }
  const { violated } = decision;
  const reply = denialReply(violated, { cors: isClientRoute(path), close: false, decision: null, page });
  return {
    kind: 'deny',
    path,
    policies,
    charged,
    spent,
    headers: headersOf(reply),
    violated,
    shadowDenials: [],
  };
}

function applyingOf({ policies }: Cover, { charge }: ChargedTo): Policy[] {
  const buckets = new Set(charge.buckets.map(({ policy }) => policy.bucketId));
  return policies.filter(({ bucketId }) => buckets.has(bucketId));
}
