/**
 * The 429s. But for its decision's id, what one says depends on the exhausted policies and on whole seconds, not on who
 * asks, so its text is made once, with a gap for the id, and serves a whole flood; and those of one turn of the event loop are written back to back at its end: fewer
 * wake-ups, and a flood costs about a third less.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DECISION_HEADER, RATELIMITED_HEADER } from '#gateway/http/header-names.ts';
import { retryAfterSeconds, type Violation } from '#gateway/limiter/decision.ts';
import { allowanceOf, unitOf } from '#gateway/policy/allowance.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Clock, Millis, Seconds } from '#shared/clock.ts';
import { DECISION_ID_LENGTH } from './decision-ids.ts';
import { limitHeaders } from './limit-headers.ts';
import { headersOf, type OwnReply, ownReply, sendOwn } from './own-reply.ts';

interface Denial {
  readonly reply: OwnReply;
  /** Names and values in turn; the last ones are the values of the decision's header and of Date. */
  readonly headers: string[];
  /** The body before and behind the id, as it is written. */
  readonly before: string;
  readonly behind: string;
}

/** What of a policy that denies its reply depends on. */
export type Refusing = Pick<
  Violation,
  'policy' | 'quota' | 'perWindow' | 'remaining' | 'resetMs' | 'canNeverPass'
>;

interface Denied {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly denial: Denial;
  readonly decision: string;
}

/** Ids have one length, so Content-Length holds for all. */
const GAP = '-'.repeat(DECISION_ID_LENGTH);

/** Of one policy. Every second brings others, and those of the seconds before are not asked for again. */
const TEXTS_MAX = 64;

export class DenialWriter {
  /** By the policy named first, with which they go when a reload replaces it. */
  readonly #texts = new WeakMap<Policy, Map<string, Denial>>();
  #queue: Denied[] = [];
  readonly #wallClock: Clock;
  /** Of the Date field (RFC 9110 6.6.1), and the second that it is of. */
  #date = '';
  #dateSecond: Seconds = 0;

  constructor(wallClock: Clock) {
    this.#wallClock = wallClock;
  }

  /**
   * @param violated the exhausted policies
   * @param options.decision its id
   * @param options.cors the route is called from browsers on other origins
   * @param options.close the connection ends with this reply
   */
  write(
    req: IncomingMessage,
    res: ServerResponse,
    violated: readonly Refusing[],
    options: { readonly decision: string; readonly cors: boolean; readonly close: boolean },
  ): void {
    const { decision, cors, close } = options;
    const denied = { req, res, denial: this.#denial(violated, cors, close), decision };
    if (this.#queue.push(denied) === 1) setImmediate(() => this.#flush());
  }

  #denial(violated: readonly Refusing[], cors: boolean, close: boolean): Denial {
    const policy = violated[0]?.policy;
    if (policy === undefined) return textOf(violated, cors, close);
    let texts = this.#texts.get(policy);
    if (texts === undefined) {
      texts = new Map();
      this.#texts.set(policy, texts);
    }
    let key = `${cors} ${close}`;
    for (const { policy, perWindow, resetMs, remaining, canNeverPass } of violated) {
      // How much can be used at once follows from the limit.
      key += ` ${policy.index}:${perWindow}:${Math.ceil(resetMs / 1000)}`;
      // Nothing is left where every request costs one.
      if (remaining > 0 || canNeverPass) key += `:${remaining} ${canNeverPass}`;
    }
    let denial = texts.get(key);
    if (denial === undefined) {
      denial = textOf(violated, cors, close);
      if (texts.size >= TEXTS_MAX) texts.clear();
      texts.set(key, denial);
    }
    return denial;
  }

  #flush(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (const { req, res, denial, decision } of queue) {
      const { reply, headers, before, behind } = denial;
      headers[headers.length - 3] = decision;
      headers[headers.length - 1] = this.#dateText();
      sendOwn(req, res, reply, headers, before + decision + behind);
    }
  }

  #dateText(): string {
    const second = Math.floor(this.#wallClock() / 1000);
    if (second !== this.#dateSecond) {
      this.#dateSecond = second;
      this.#date = new Date(second * 1000).toUTCString();
    }
    return this.#date;
  }
}

function textOf(violated: readonly Refusing[], cors: boolean, close: boolean): Denial {
  const reply = denialReply(violated, cors, close, GAP);
  const gapAt = reply.bodyBytes.lastIndexOf(GAP);
  return {
    reply,
    headers: [...headersOf(reply), DECISION_HEADER, '', 'Date', ''],
    before: reply.bodyBytes.slice(0, gapAt),
    behind: reply.bodyBytes.slice(gapAt + GAP.length),
  };
}

/**
 * @param violated the exhausted policies
 * @param cors the route is called from browsers on other origins
 * @param close the connection ends with this reply
 * @param decision its id, for the body; null: it has none
 */
export function denialReply(
  violated: readonly Refusing[],
  cors: boolean,
  close: boolean,
  decision: string | null,
): OwnReply {
  return ownReply('gateway_rate_limited', denialMessage(violated), {
    headers: [
      RATELIMITED_HEADER,
      'true',
      ...(violated.some(({ canNeverPass }) => canNeverPass)
        ? []
        : ['Retry-After', String(retryAfterSeconds(violated))]),
      ...limitHeaders(violated),
    ],
    cors,
    close,
    extra: {
      error: { code: 429, message: 'Too Many Requests' },
      'violated-policies': [...new Set(violated.map(({ policy }) => policy.name))],
      ...(decision === null ? {} : { decision }),
    },
  });
}

/**
 * 429 and not 403, on which survey widgets would drop their answers.
 *
 * @param leftMs until the ban ends
 * @param decision its id; null: it has none
 */
export function bannedReply(
  leftMs: Millis,
  decision: string | null,
  options: { readonly cors: boolean; readonly close: boolean },
): OwnReply {
  const seconds = Math.max(1, Math.ceil(leftMs / 1000));
  return ownReply(
    'gateway_banned',
    'The operator has blocked this client for a while. Wait for the seconds in Retry-After.',
    {
      headers: [
        RATELIMITED_HEADER,
        'true',
        'Retry-After',
        String(seconds),
        ...(decision === null ? [] : [DECISION_HEADER, decision]),
      ],
      extra: decision === null ? {} : { decision },
      ...options,
    },
  );
}

/** How long who is on the list `deny` is asked to wait: lists are edited now and then. */
export const DENIED_SECONDS: Seconds = 3600;

/**
 * What the list `deny` says. Never 403 on routes that browsers call from elsewhere: survey widgets drop their answers on
 * it, and try again after 429.
 *
 * @param decision its id; null: it has none
 */
export function listedReply(
  { status, reason }: Pick<ListEntry, 'status' | 'reason'>,
  decision: string | null,
  options: { readonly cors: boolean; readonly close: boolean },
): OwnReply {
  const isForbidden = status === 403 && !options.cors;
  const message = `The operator has blocked this client${reason === null ? '.' : `: ${reason}`}`;
  const id = decision === null ? [] : [DECISION_HEADER, decision];
  return ownReply(isForbidden ? 'gateway_forbidden' : 'gateway_denied', message, {
    ...options,
    headers: isForbidden ? id : [RATELIMITED_HEADER, 'true', 'Retry-After', String(DENIED_SECONDS), ...id],
    extra: decision === null ? {} : { decision },
  });
}

function denialMessage(violated: readonly Refusing[]): string {
  const [first] = violated;
  if (first === undefined) return 'Too many requests.';
  const { policy, quota, canNeverPass } = first;
  if (canNeverPass)
    return `This request takes more of policy ${policy.name} than can ever be used at once, ${quota}${unitOf(policy)}. It cannot pass: send less in one request.`;
  return `Too many requests: policy ${policy.name} allows ${allowanceOf(first, ' seconds')}. Wait for the seconds in Retry-After.`;
}
