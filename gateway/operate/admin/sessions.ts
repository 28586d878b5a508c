/**
 * Sessions of people who signed in on the page with the admin token. A session has two secrets: a cookie, which scripts
 * cannot read, and a proof, which the page keeps and sends as a header. Browsers send a cookie to every port of a host,
 * so the application gets it too; therefore the cookie alone gives no access. Sessions end after eight hours, at the
 * sign-out, or with the process.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';

const COOKIE = 'floodgate_session';
export const PROOF_HEADER = 'x-floodgate-proof';
export const SESSION_MS: Millis = 8 * 3_600_000;
/** Maximum number of sessions. Beyond it the oldest is dropped. */
export const SESSIONS_MAX = 64;
/** Maximum number of wrong tokens from one address in a minute. */
export const MISTAKES_MAX = 10;
const MISTAKES_MS: Millis = 60_000;
const MISTAKEN_MAX = 1024;

export interface Session {
  /** A short name for the log, which gives no access. */
  readonly name: string;
  readonly endsAt: Millis;
}

interface SessionsOptions {
  readonly clock: Clock;
  readonly newSecret: () => string;
}

export class Sessions {
  readonly #options: SessionsOptions;
  /** Sessions by digest of the cookie. */
  readonly #sessions = new Map<string, Session & { readonly proofDigest: Buffer }>();
  readonly #mistakes = new Map<string, { count: number; readonly endsAt: Millis }>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  begin() {
    const { clock, newSecret } = this.#options;
    const cookie = newSecret();
    const proof = newSecret();
    const id = digestOf(cookie);
    const session = { name: id.slice(0, 6), endsAt: clock() + SESSION_MS };
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size < SESSIONS_MAX) break;
      this.#sessions.delete(oldest);
    }
    this.#sessions.set(id, { ...session, proofDigest: bufferOf(proof) });
    return { ...session, cookie, proof };
  }

  /** @param cookies value of the Cookie field @returns null without a valid session */
  of(cookies: string | undefined, proof: unknown): Session | null {
    const id = idIn(cookies);
    const session = id === null ? undefined : this.#sessions.get(id);
    if (id === null || session === undefined) return null;
    if (session.endsAt <= this.#options.clock()) {
      this.#sessions.delete(id);
      return null;
    }
    return timingSafeEqual(bufferOf(String(proof)), session.proofDigest) ? session : null;
  }

  end(cookies: string | undefined): void {
    const id = idIn(cookies);
    if (id !== null) this.#sessions.delete(id);
  }

  /** @returns how long this address must wait before it may try a token; 0 if it need not wait */
  waitMs(address: string): Millis {
    const mistakes = this.#mistakes.get(address);
    const leftMs = (mistakes?.endsAt ?? 0) - this.#options.clock();
    return leftMs > 0 && (mistakes?.count ?? 0) >= MISTAKES_MAX ? leftMs : 0;
  }

  noteMistake(address: string): void {
    const now = this.#options.clock();
    const known = this.#mistakes.get(address);
    if (known !== undefined && known.endsAt > now) {
      known.count++;
      return;
    }
    this.#mistakes.delete(address);
    for (const oldest of this.#mistakes.keys()) {
      if (this.#mistakes.size < MISTAKEN_MAX) break;
      this.#mistakes.delete(oldest);
    }
    this.#mistakes.set(address, { count: 1, endsAt: now + MISTAKES_MS });
  }
}

/** @param isSecure whether the page was loaded over TLS, which a proxy in front has terminated */
export function cookieOf(value: string, seconds: number, isSecure: boolean): string {
  return `${COOKIE}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
}

function idIn(cookies: string | undefined): string | null {
  const [, value] = /(?:^|;\s*)floodgate_session=([\w-]{43})(?:;|$)/.exec(cookies ?? '') ?? [];
  return value === undefined ? null : digestOf(value);
}

function digestOf(secret: string): string {
  return hash('sha256', secret);
}

function bufferOf(secret: string): Buffer {
  return Buffer.from(digestOf(secret), 'hex');
}
