/** Writes audit entries about accounts. */
import type { FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { countedAddress } from '#api/http/client-address.ts';

interface AccountEvent {
  readonly action:
    | 'passwordVerified'
    | 'twoFactorRequired'
    | 'twoFactorVerified'
    | 'authenticationSucceeded'
    | 'emailVerified'
    | 'userSignedOut'
    | 'created'
    | 'updated'
    | 'deleted';
  readonly userId: string;
  /** Further details: names and codes, and no text that a person typed. */
  readonly changes: Readonly<Record<string, unknown>>;
  readonly organizationId?: string;
  /** The changed object; undefined for the account itself. */
  readonly target?: { readonly type: string; readonly id: string };
}

/** Resolves when the entry is written, or skipped because of the counts. Never rejects. */
export function noteAccountEvent(
  { audit, config }: Pick<Context, 'audit' | 'config'>,
  request: FastifyRequest,
  { action, userId, changes, organizationId, target }: AccountEvent,
): Promise<void> {
  return audit.record({
    action,
    actor: { type: 'user', id: userId },
    target: target ?? { type: 'user', id: userId },
    organizationId: organizationId ?? null,
    failureReason: null,
    changes,
    ipAddress: countedAddress(request, config.trustedProxies),
    requestId: request.id,
  });
}
