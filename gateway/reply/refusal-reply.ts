/** The reply to a refused request, by what its client is told. */
import { kindOf, type ToldRefusal } from '#gateway/refusals/refusal.ts';
import type { Cors } from './cors.ts';
import { limitHeaders } from './limit-headers.ts';
import { type OwnReply, ownReply } from './own-reply.ts';
import type { Page } from './page.ts';

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

/** @param added the gateway's headers for an admitted request, alternating names and values */
export function refusalReply(
  refusal: ToldRefusal,
  framing: Framing,
  added: readonly string[] = [],
): OwnReply {
  const kind = kindOf(refusal);
  const told = kind.told(refusal, framing.cors.isClientRoute);
  const { text, code = kind.reason(refusal).code, retryAfter, limits, policies, extra } = told;
  const wait = retryAfter === undefined ? [] : ['Retry-After', String(retryAfter)];
  return ownReply(code, text, {
    ...framing,
    policy: policies?.join(', ') ?? '',
    headers: [...added, ...wait, ...limitHeaders(limits ?? [])],
    ...(extra === undefined ? {} : { extra }),
  });
}
