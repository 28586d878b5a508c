/**
 * Notices that the application lets pages of other origins read its replies, while the policy file does not say which of
 * them may read those of the gateway. The request alone proves nothing: anybody can send an Origin.
 */
import type { Logger } from 'pino';
import { isClientRoute } from '#gateway/http/header-names.ts';
import { originIn } from '#gateway/http/page-origin.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';

/** A request that the application has answered. */
export interface AnsweredPage {
  readonly req: { readonly rawHeaders: readonly string[] };
  readonly head: Pick<CheckedHead, 'host' | 'forwardedHost'>;
  readonly match: { readonly path: string };
}

const ALLOWS = 'access-control-allow-origin';

export class ForeignPages {
  readonly #onSeen: () => void;
  #looks: boolean;
  #isSeen = false;

  /** @param onSeen called once */
  constructor({ origins }: Pick<PolicySet, 'origins'>, onSeen: () => void) {
    this.#looks = origins === null;
    this.#onSeen = onSeen;
  }

  get isSeen(): boolean {
    return this.#isSeen;
  }

  /** @param replyHeaders of the application, alternating names and values */
  note({ req, head, match }: AnsweredPage, replyHeaders: readonly string[]): void {
    if (!this.#looks || !allowsPages(replyHeaders) || isClientRoute(match.path)) return;
    const [, host] = originIn(req.rawHeaders)?.split('://') ?? [];
    if (host === undefined || host === head.host || host === head.forwardedHost) return;
    this.#looks = false;
    this.#isSeen = true;
    this.#onSeen();
  }
}

/** @returns a function that logs that pages of other origins cannot read refusals */
export function foreignPagesWarning(log: Pick<Logger, 'warn'>, file: string): () => void {
  return () =>
    log.warn(
      { file },
      'the application lets pages of other origins read its replies, but they cannot read a 429: list their origins under replies: { cors: [ORIGIN] } of the policy file, or write cors: []',
    );
}

function allowsPages(replyHeaders: readonly string[]): boolean {
  for (let i = 0; i < replyHeaders.length; i += 2) {
    const name = replyHeaders[i] ?? '';
    if (name.length === ALLOWS.length && name.toLowerCase() === ALLOWS) return true;
  }
  return false;
}
