/** Writes audit entries about accounts. */
import type { FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { countedAddress } from '#api/http/client-address.ts';

interface AccountEvent {
  readonly action:
    | 'passwordVerified'
    | 'authenticationSucceeded'
    | 'emailVerified'
    | 'userSignedOut'
    | 'created'
    | 'updated'
    | 'deleted';
  /** null if unknown, as with a link that has ended. */
  readonly userId: string | null;
  /** Further details: names and codes, and no text that a person typed. */
  readonly changes: Readonly<Record<string, unknown>>;
  readonly organizationId?: string;
  /** The reason of a refusal; absent or null after a success. */
  readonly failureReason?: 'invalid_token' | null;
  /** The changed object; undefined for the account itself. */
  readonly target?: { readonly type: string; readonly id: string };
}

/** Resolves when the entry is written, or skipped because of the counts. Never rejects. */
export function noteAccountEvent(
  { audit, config }: Pick<Context, 'audit' | 'config'>,
  request: FastifyRequest,
  { action, userId, changes, organizationId, failureReason, target }: AccountEvent,
): Promise<void> {
  const actor = { type: 'user', id: userId ?? 'unknown' } as const;
  return audit.record({
    action,
    actor,
    target: target ?? actor,
    organizationId: organizationId ?? null,
    failureReason: failureReason ?? null,
    changes,
    ipAddress: countedAddress(request, config.trustedProxies),
    requestId: request.id,
  });
}
