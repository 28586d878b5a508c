/**
 * Writes the replies of policies.
 *
 * A 429 depends on the exhausted policies and on whole seconds, not on the client. So its text is made once, with a gap
 * for the id of the refusal, and serves a whole flood. All 429s of one event-loop tick are written at its end, which
 * makes a flood about a third cheaper.
 */
import type { SharingResponse } from '#gateway/http/client-exchange.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { DECISION_ID_LENGTH } from '#gateway/refusals/decision-ids.ts';
import type { ToldLimit } from '#gateway/refusals/refusal.ts';
import type { Clock } from '#shared/clock.ts';
import { type AnsweredRequest, headersOf, type OwnReply, sendOwn } from './own-reply.ts';
import { type Framing, refusalReply } from './refusal-reply.ts';

interface Denial {
  /** The first denying policy. */
  readonly policy: Policy | undefined;
  /** It has GAP in the places of the id. */
  readonly reply: OwnReply;
  readonly shared: SharedReply;
}

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

  write(
    req: AnsweredRequest,
    res: SharingResponse,
    refusal: ToldLimit,
    { cors, close, page }: Framing,
    decision: string,
  ): void {
    const denial = this.#denial(refusal, { cors, close, page, decision: GAP });
    const denied = { req, res, denial, decision };
    if (this.#queue.push(denied) === 1) setImmediate(() => this.#flush());
  }

  #denial(refusal: ToldLimit, framing: Framing): Denial {
    const { violated, retryAfter } = refusal;
    const policy = violated[0]?.policy;
    if (policy === undefined) return textOf(refusal, framing);
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
      denial = textOf(refusal, framing);
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

function textOf(refusal: ToldLimit, framing: Framing): Denial {
  const reply = refusalReply(refusal, framing);
  const headers = headersOf({ ...reply, close: false });
  const shared = new SharedReply(reply.status, headers, reply.bodyBytes, GAP);
  return { policy: refusal.violated[0]?.policy, reply, shared };
}
