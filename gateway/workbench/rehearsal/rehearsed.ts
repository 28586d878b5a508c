/** The results of a rehearsal, and the gateway's reply to each. */
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Decision } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { CODES } from '#gateway/refusals/codes.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import { limitRefusal, type Refusal } from '#gateway/refusals/refusal.ts';
import type { CorsTable } from '#gateway/reply/cors.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import { headersOf } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import { isPreflight, preflightReply } from '#gateway/reply/preflight.ts';
import { refusalReply } from '#gateway/reply/refusal-reply.ts';
import type { GroupedRequest } from '#gateway/request/reading/prove.ts';
import type { Banned, ChargedTo, Listed, Malformed, Uncovered } from '#gateway/request/reading/reading.ts';
import type { Millis } from '#shared/clock.ts';

interface Placed {
  readonly match: Match;
  readonly request: GroupedRequest;
}

/** A request for which something is charged, or would be if there was room. */
export interface DecidedAs<Kind extends Decision['kind']> extends Placed {
  readonly kind: Kind;
  readonly charged: ChargedTo;
  readonly spent: Spent;
  readonly decision: Extract<Decision, { kind: Kind }>;
}

export type Decided = DecidedAs<'allow'> | DecidedAs<'deny'>;

export type Rehearsed = Malformed | (Banned & Placed) | (Listed & Placed) | (Uncovered & Placed) | Decided;

/** What the reply depends on besides the decision. */
export interface Asking {
  readonly method: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
  /** The page for a browser that loads a page; null for a JSON reply. */
  readonly page: Page | null;
  readonly cors: CorsTable;
}

interface Reply {
  /** null if the application answers */
  readonly status: number | null;
  /** The gateway's headers, alternating names and values. */
  readonly headers: readonly string[];
}

export function replyTo(
  asked: Rehearsed,
  now: Millis,
  { method, rawHeaders, page, cors: table }: Asking,
): Reply {
  if (asked.kind === 'malformed')
    return { status: CODES[REASONS.malformed.code].status, headers: table.unread(rawHeaders).headers };
  const cors = table.on(method, asked.match.path, rawHeaders);
  const framing = { cors, close: false, decision: null, page };
  const refused = (refusal: Refusal): Reply => {
    const isAsked = cors.origin !== null && isPreflight(method, rawHeaders);
    const reply = isAsked ? preflightReply(framing, rawHeaders) : refusalReply(refusal, framing);
    return { status: reply.status, headers: headersOf(reply) };
  };
  switch (asked.kind) {
    case 'banned':
      return refused({ ...asked, leftMs: asked.endsAt - now });
    case 'listed':
      return refused(asked);
    case 'deny': {
      const { decision, charged } = asked;
      return refused(limitRefusal(decision.violated, charged.charge.buckets, 'store', null));
    }
    case 'allow':
      return { status: null, headers: limitHeaders(asked.decision.verdicts) };
    case 'uncovered':
      return { status: null, headers: [] };
    default:
      return asked satisfies never;
  }
}

/** Returns the policies that count the request, in the order of the file. */
export function applyingOf(asked: Rehearsed): readonly Policy[] {
  if (asked.kind !== 'allow' && asked.kind !== 'deny') return [];
  const buckets = new Set(asked.charged.charge.buckets.map(({ policy }) => policy.bucketId));
  return asked.match.cover?.policies.filter(({ bucketId }) => buckets.has(bucketId)) ?? [];
}

/** @returns null if the request is malformed */
export function priorityOf(asked: Rehearsed): Priority | null {
  return asked.kind === 'malformed' ? null : (asked.match.cover?.priority ?? 'normal');
}
