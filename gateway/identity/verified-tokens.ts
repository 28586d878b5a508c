/**
 * Cache of verified tokens, by digest: each signature is checked once, not for every request. Tokens with a wrong
 * signature have a table of their own, so that a flood of them does not evict valid ones.
 */
import { hash } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Digester, Identity } from './digest.ts';
import type { TokenIdentifier, TokenSource } from './identifier.ts';
import { verifiedClaim } from './json-web-token.ts';

interface Known {
  readonly identity: Identity;
  readonly plan: string | null;
  readonly from: Millis;
  readonly until: Millis;
}

/** Entries take about 400 bytes. The oldest one is dropped first. */
const VERIFIED_MAX = 16_384;
const UNSIGNED_MAX = 4096;

export class VerifiedTokens {
  readonly #digester: Digester;
  readonly #wallClock: Clock;
  readonly #planClaim: string | null;
  readonly #verified = new Map<string, Known>();
  readonly #unsigned = new Set<string>();

  /** @param planClaim the claim that names the client's plan; null if none does */
  constructor(digester: Digester, wallClock: Clock, planClaim: string | null = null) {
    this.#digester = digester;
    this.#wallClock = wallClock;
    this.#planClaim = planClaim;
  }

  get size(): number {
    return this.#verified.size + this.#unsigned.size;
  }

  identify(identifier: TokenIdentifier, source: TokenSource, token: string): Identity | null {
    return this.#known(identifier, source, token)?.identity ?? null;
  }

  /** Returns the plan that a valid token names; null if the token is invalid, or names none. */
  planOf(identifier: TokenIdentifier, source: TokenSource, token: string): string | null {
    return this.#known(identifier, source, token)?.plan ?? null;
  }

  #known(identifier: TokenIdentifier, source: TokenSource, token: string): Known | null {
    const now = this.#wallClock();
    const key = `${source.id} ${hash('sha256', token, 'base64url')}`;
    const known = this.#verified.get(key);
    if (known !== undefined) return now >= known.from && now < known.until ? known : null;
    if (this.#unsigned.has(key)) return null;
    const verified = verifiedClaim(token, source, now, this.#planClaim);
    if (typeof verified === 'string') {
      // Other faults are found without checking a signature, so they need no cache.
      if (verified === 'unsigned') {
        makeRoom(this.#unsigned, UNSIGNED_MAX);
        this.#unsigned.add(key);
      }
      return null;
    }
    const { value, plan, from, until } = verified;
    const entry = { identity: this.#digester.identify(identifier, value), plan, from, until };
    makeRoom(this.#verified, VERIFIED_MAX);
    this.#verified.set(key, entry);
    return entry;
  }
}

function makeRoom(table: Map<string, unknown> | Set<string>, max: number): void {
  if (table.size < max) return;
  for (const oldest of table.keys()) {
    table.delete(oldest);
    return;
  }
}
