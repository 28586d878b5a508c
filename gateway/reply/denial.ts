/**
 * Writes the replies of policies.
 *
 * A 429 depends on the exhausted policies and on whole seconds, not on the client. So its text is made once, with a gap
 * for the id of the refusal, and serves a whole flood. All 429s of one event-loop tick are written at its end, which
 * makes a flood about a third cheaper.
 */
import type { ClientResponse } from '#gateway/http/client-exchange.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { DECISION_ID_LENGTH } from '#gateway/refusals/decision-ids.ts';
import type { LimitRefusal } from '#gateway/refusals/refusal.ts';
import type { Clock } from '#shared/clock.ts';
import { type Framing, headersOf, type OwnReply, sendOwn } from './own-reply.ts';
import type { Page } from './page.ts';
import { refusalReply } from './refusal-reply.ts';

interface Denial {
  /** The first denying policy, and the page. A reload replaces both, and then the text is made again. */
  readonly policy: Policy | undefined;
  readonly page: Page | null;
  /** It has GAP in the places of the id. */
  readonly reply: OwnReply;
  readonly shared: SharedReply;
}

interface Denied {
  readonly res: ClientResponse;
  readonly denial: Denial;
  readonly decision: string;
}

/**
 * Placeholder for the id. It is as long as an id, so Content-Length does not change. No policy name contains a tilde.
 */
const GAP = '~decision'.padEnd(DECISION_ID_LENGTH, '~');

/** The bodies of the texts that are kept have at most so many bytes. Texts of past seconds are not used again. */
const KEPT_BYTES_MAX = 1_048_576;

export class DenialWriter {
  readonly #kept = new Map<string, Denial>();
  #keptBytes = 0;
  #queue: Denied[] = [];
  readonly #date: DateField;

  constructor(wallClock: Clock) {
    this.#date = new DateField(wallClock);
  }

  write(res: ClientResponse, refusal: LimitRefusal, { cors, close, page }: Framing, decision: string): void {
    const denial = this.#denial(refusal, { cors, close, page, decision: GAP });
    if (this.#queue.push({ res, denial, decision }) === 1) setImmediate(() => this.#flush());
  }

  #denial(refusal: LimitRefusal, framing: Framing): Denial {
    const { violated, retryAfter } = refusal;
    const { cors, close, page } = framing;
    let key = `${page === null} ${cors.origin} ${cors.credentials} ${cors.varies} ${close} ${retryAfter}`;
    for (const { policy, limit, resetMs, remaining, canNeverPass } of violated) {
      // The key needs no `capacity`, because it follows from the limit.
      key += ` ${policy.index}:${limit}:${Math.ceil(resetMs / 1000)}`;
      // Usually `remaining` is 0, because most requests cost one unit.
      if (remaining > 0 || canNeverPass) key += `:${remaining} ${canNeverPass}`;
    }
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.policy === violated[0]?.policy && kept.page === page) return kept;
    const denial = textOf(refusal, framing);
    this.#keptBytes += denial.reply.body.length;
    if (this.#keptBytes > KEPT_BYTES_MAX) {
      this.#kept.clear();
      this.#keptBytes = denial.reply.body.length;
    }
    this.#kept.set(key, denial);
    return denial;
  }

  #flush(): void {
    const queue = this.#queue;
    this.#queue = [];
    const date = this.#date.text();
    for (const { res, denial, decision } of queue) {
      const { reply, shared } = denial;
      if (res.headersSent || res.destroyed) continue;
      if (reply.close) {
        const headers = reply.headers.map((item) => (item === GAP ? decision : item));
        const body = shared.bodyWith(decision);
        sendOwn(res, { ...reply, headers: [...headers, 'Date', date], body });
      } else {
        res.endShared(shared, decision, date);
        discardBody(res.req.body);
      }
    }
  }
}

function textOf(refusal: LimitRefusal, framing: Framing): Denial {
  const reply = refusalReply(refusal, framing);
  const headers = headersOf({ ...reply, close: false });
  const shared = new SharedReply(reply.status, headers, reply.body, GAP);
  return { policy: refusal.violated[0]?.policy, page: framing.page, reply, shared };
}
