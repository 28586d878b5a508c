/** Learns from a reply whether the credential of its request works. */
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { KnownAs } from './charged-to.ts';

export function learn(limiter: Limiter, identified: KnownAs, status: number): void {
  const { credentials, pathValues } = identified;
  if (status >= 200 && status < 300) {
    // `provable` reads the whole request, so it is asked once an hour for each credential.
    const isKnown = credentials.every((credential) => limiter.isProofFresh(credential));
    const provable = isKnown ? null : identified.provable;
    if (provable !== null) limiter.prove(provable);
    for (const value of pathValues) if (!limiter.isProofFresh(value)) limiter.prove(value);
  } else if (status === 401) {
    for (const credential of credentials) if (limiter.isProven(credential)) limiter.withdraw(credential);
  }
}
