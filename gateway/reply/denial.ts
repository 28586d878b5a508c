/**
 * Replies of policies, bans and the list deny.
 *
 * A 429 depends on the exhausted policies and on whole seconds, not on the client. So its text is made once, with a gap
 * for the id of the refusal, and serves a whole flood. All 429s of one event-loop tick are written at its end, which
 * makes a flood about a third cheaper.
 */
import type { SharingResponse } from '#gateway/http/client-exchange.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { DECISION_ID_LENGTH } from '#gateway/refusals/decision-ids.ts';
import { LIST_REASONS, limitReasonOf, REASONS } from '#gateway/refusals/reasons.ts';
import type { Clock, Millis, Seconds } from '#shared/clock.ts';
import type { Cors } from './cors.ts';
import { limitHeaders } from './limit-headers.ts';
import { type AnsweredRequest, headersOf, type OwnReply, ownReply, sendOwn } from './own-reply.ts';
import type { Page } from './page.ts';

interface Denial {
  /** The first denying policy. */
  readonly policy: Policy | undefined;
  /** It has GAP in the places of the id. */
  readonly reply: OwnReply;
  readonly shared: SharedReply;
}

/** The parts of a violation that its reply depends on. */
type Refusing = Pick<Violation, 'policy' | 'capacity' | 'limit' | 'remaining' | 'resetMs' | 'canNeverPass'>;

interface Denied {
  readonly req: AnsweredRequest;
  readonly res: SharingResponse;
  readonly denial: Denial;
  readonly decision: string;
}

/**
 * Placeholder for the id. It is as long as an id, so Content-Length does not change. No policy name contains a tilde.
 */
const GAP = '~decision'.padEnd(DECISION_ID_LENGTH, '~');

/** Maximum number of texts for one policy, and of pages for all of them. Texts of past seconds are not used again. */
const TEXTS_MAX = 64;

export class DenialWriter {
  /** Texts by the first denying policy. They are dropped when a reload replaces the policy. */
  readonly #texts = new WeakMap<Policy, Map<string, Denial>>();
  /** Pages are larger, so all policies share these. */
  readonly #pages = new Map<string, Denial>();
  #queue: Denied[] = [];
  readonly #date: DateField;

  constructor(wallClock: Clock) {
    this.#date = new DateField(wallClock);
  }

  /** @param violated the exhausted policies */
  write(
    req: AnsweredRequest,
    res: SharingResponse,
    violated: readonly Refusing[],
    retryAfter: Seconds,
    { decision, cors, close, page }: Framing & { readonly decision: string },
  ): void {
    const denied = {
      req,
      res,
      denial: this.#denial(violated, retryAfter, { cors, close, page, decision: GAP }),
      decision,
    };
    if (this.#queue.push(denied) === 1) setImmediate(() => this.#flush());
  }

  #denial(violated: readonly Refusing[], retryAfter: Seconds, framing: Framing): Denial {
    const policy = violated[0]?.policy;
    if (policy === undefined) return textOf(violated, retryAfter, framing);
    const { cors, close, page } = framing;
    const texts = page === null ? this.#textsOf(policy) : this.#pages;
    let key = `${cors.key} ${close} ${retryAfter}`;
    for (const { policy, limit, resetMs, remaining, canNeverPass } of violated) {
      // The key needs no `capacity`, because it follows from the limit.
      key += ` ${policy.index}:${limit}:${Math.ceil(resetMs / 1000)}`;
      // Usually `remaining` is 0, because most requests cost one unit.
      if (remaining > 0 || canNeverPass) key += `:${remaining} ${canNeverPass}`;
    }
    let denial = texts.get(key);
    // Write the text again if the cached page belongs to a policy that a reload has replaced.
    if (denial?.policy !== policy) {
      denial = textOf(violated, retryAfter, framing);
      if (texts.size >= TEXTS_MAX) texts.clear();
      texts.set(key, denial);
    }
    return denial;
  }

  #textsOf(policy: Policy): Map<string, Denial> {
    let texts = this.#texts.get(policy);
    if (texts === undefined) {
      texts = new Map();
      this.#texts.set(policy, texts);
    }
    return texts;
  }

  #flush(): void {
    const queue = this.#queue;
    this.#queue = [];
    const date = this.#date.text();
    for (const { req, res, denial, decision } of queue) {
      const { reply, shared } = denial;
      if (res.headersSent || res.destroyed) continue;
      if (reply.close) {
        const headers = reply.headers.map((item) => (item === GAP ? decision : item));
        const bodyBytes = shared.bodyWith(decision);
        sendOwn(req, res, { ...reply, headers: [...headers, 'Date', date], bodyBytes });
      } else {
        res.endShared(shared, decision, date);
        discardBody(req.body);
      }
    }
  }
}

function textOf(violated: readonly Refusing[], retryAfter: Seconds, framing: Framing): Denial {
  const reply = denialReply(violated, retryAfter, framing);
  const headers = headersOf({ ...reply, close: false });
  const shared = new SharedReply(reply.status, headers, reply.bodyBytes, GAP);
  return { policy: violated[0]?.policy, reply, shared };
}

/** Options for writing a refusal. */
export interface Framing {
  /** Decides what pages of other origins may read. */
  readonly cors: Cors;
  /** Whether the connection ends with this reply. */
  readonly close: boolean;
  /** Id of the refusal; null if it has none. */
  readonly decision: string | null;
  /** The page for a browser; null for a JSON reply. */
  readonly page: Page | null;
}

/** @param violated the exhausted policies @param retryAfter not sent if waiting does not help */
export function denialReply(violated: readonly Refusing[], retryAfter: Seconds, framing: Framing): OwnReply {
  const canNeverPass = violated.some((verdict) => verdict.canNeverPass);
  const wait = canNeverPass ? [] : ['Retry-After', String(retryAfter)];
  const names = [...new Set(violated.map(({ policy }) => policy.name))];
  const [first] = violated;
  const { code, text } = first === undefined ? REASONS.policyLimit : limitReasonOf(first.policy);
  return ownReply(code, text(first), {
    ...framing,
    policy: names.join(', '),
    headers: [...wait, ...limitHeaders(violated)],
    extra: {
      error: { code: 429, message: 'Too Many Requests' },
      'violated-policies': names,
    },
  });
}

/** @param leftMs until the ban ends */
export function bannedReply(leftMs: Millis, framing: Framing): OwnReply {
  const { code, text } = REASONS.ban;
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return ownReply(code, text, { ...framing, headers: ['Retry-After', String(seconds)] });
}

/**
 * Answers clients and routes on the list `deny`. On client routes it never uses 403, because survey widgets retry only a
 * 429.
 */
export function listedReply(
  { names, status, reason }: Pick<ListEntry, 'names' | 'status' | 'reason'>,
  framing: Framing,
): OwnReply {
  const { code, text } = LIST_REASONS[names];
  const isForbidden = status === 403 && !framing.cors.isClientRoute;
  return ownReply(isForbidden ? 'gateway_forbidden' : code, text({ reason }), framing);
}
