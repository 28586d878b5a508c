/** Cache of verified tokens, by digest: each valid signature is checked once, not for every request. */
import { hash } from 'node:crypto';
import type { Clock } from '#shared/clock.ts';
import type { Digester, Identity } from './digest.ts';
import type { TokenIdentifier, TokenSource } from './identifier.ts';
import { type Verified, verifiedClaim } from './json-web-token.ts';

interface Known extends Omit<Verified, 'value'> {
  readonly identity: Identity;
}

/** Entries take about 400 bytes. The oldest one is dropped first. */
const VERIFIED_MAX = 16_384;

export class VerifiedTokens {
  readonly #digester: Digester;
  readonly #wallClock: Clock;
  readonly #planClaim: string | null;
  readonly #verified = new Map<string, Known>();

  /** @param planClaim the claim that names the client's plan; null if none does */
  constructor(digester: Digester, wallClock: Clock, planClaim: string | null = null) {
    this.#digester = digester;
    this.#wallClock = wallClock;
    this.#planClaim = planClaim;
  }

  get size(): number {
    return this.#verified.size;
  }

  /** @returns null if the token is invalid */
  find(identifier: TokenIdentifier, source: TokenSource, token: string): Known | null {
    const now = this.#wallClock();
    const key = `${source.id} ${hash('sha256', token, 'base64url')}`;
    const known = this.#verified.get(key);
    if (known !== undefined) return now >= known.from && now < known.until ? known : null;
    const verified = verifiedClaim(token, source, now, this.#planClaim);
    if (verified === null) return null;
    const { value, plan, from, until } = verified;
    const entry = { identity: this.#digester.identify(identifier, value), plan, from, until };
    const [oldest = ''] = this.#verified.keys();
    if (this.#verified.size >= VERIFIED_MAX) this.#verified.delete(oldest);
    this.#verified.set(key, entry);
    return entry;
  }
}
