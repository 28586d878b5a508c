/**
 * Turns addresses and credentials into digests: HMAC-SHA-256 under a secret salt, truncated to 16 bytes. Only digests
 * reach the store, the log and metrics.
 */
import { hash } from 'node:crypto';
import { comparable } from './comparable.ts';
import type { SimpleIdentifier } from './identifier.ts';

/** One counted client. It lives as long as the request or connection; tables are keyed by its digest. */
export interface Identity {
  /** 22 characters, base64url: 16 bytes. */
  readonly digest: string;
  /** The first 120 bits of the digest, 30 in each word. Key of flat tables. */
  readonly words: DigestWords;
}

export type DigestWords = readonly [number, number, number, number];

const BLOCK_BYTES = 64;
const DIGEST_LENGTH = 22;
const WORD_LENGTH = 5;

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const SEXTETS = new Uint8Array(128);
for (let value = 0; value < BASE64URL.length; value++) SEXTETS[BASE64URL.charCodeAt(value)] = value;

function word(digest: string, at: number): number {
  let value = 0;
  for (let i = at; i < at + WORD_LENGTH; i++) value = (value << 6) | (SEXTETS[digest.charCodeAt(i)] ?? 0);
  return value;
}

/** Truncates the text instead of bytes. Of the last character only the upper two bits belong to the 16 bytes. */
function first16Bytes(hash: string): string {
  const last = SEXTETS[hash.charCodeAt(DIGEST_LENGTH - 1)] ?? 0;
  return hash.slice(0, DIGEST_LENGTH - 1) + BASE64URL.charAt(last & 0b110000);
}

export function identityOf(digest: string): Identity {
  return { digest, words: [word(digest, 0), word(digest, 5), word(digest, 10), word(digest, 15)] };
}

/** @returns the eight bits of a digest that its words do not have */
export function lastBits(digest: string): number {
  return word(digest, DIGEST_LENGTH - 2) >>> 22;
}

/** Builds an identity again. @param last the bits that `lastBits` returned */
export function identityFrom(words: DigestWords, last: number): Identity {
  const digits = words.flatMap((one) => [24, 18, 12, 6, 0].map((shift) => (one >>> shift) & 63));
  const sextets = [...digits, last >>> 2, (last & 3) << 4];
  return { digest: sextets.map((value) => BASE64URL.charAt(value)).join(''), words };
}

/**
 * HMAC (RFC 2104) from two one-shot hashes, which takes half the time of `createHmac`.
 *
 * An address has the same identity under every identifier; a credential includes the identifier's name. A prefix
 * separates the kinds, so a credential that looks like an address is another identity.
 */
export class Digester {
  readonly #inner: string;
  readonly #outer: Buffer;

  /** @param salt a secret of any length, because knowing it allows testing guessed addresses against digests */
  constructor(salt: string) {
    // The key is a hash in hexadecimal: ASCII of exactly one block, so the inner padding is valid as text.
    const key = Buffer.from(hash('sha256', salt, 'hex'), 'latin1');
    this.#inner = Buffer.from(key.map((byte) => byte ^ 0x36)).toString('latin1');
    this.#outer = Buffer.alloc(BLOCK_BYTES + 32);
    this.#outer.set(key.map((byte) => byte ^ 0x5c));
  }

  identify(identifier: SimpleIdentifier, value: string): Identity {
    return this.#digest(subjectOf(identifier, value));
  }

  /** The digest depends on the order of the identities. */
  combine(identities: readonly Identity[]): Identity {
    return this.#digest(`combined\0${identities.map(({ digest }) => digest).join('\0')}`);
  }

  #digest(subject: string): Identity {
    this.#outer.write(hash('sha256', this.#inner + subject, 'latin1'), BLOCK_BYTES, 'latin1');
    return identityOf(first16Bytes(hash('sha256', this.#outer, 'base64url')));
  }
}

/** @param value each code unit stands for one byte of UTF-8 */
function caselessKey(value: string): string {
  return comparable(Buffer.from(value, 'latin1').toString());
}

function subjectOf(identifier: SimpleIdentifier, value: string): string {
  switch (identifier.kind) {
    case 'address':
      return `address\0${value}`;
    case 'credential':
      return `credential\0${identifier.name}\0${identifier.ignoresCase === true ? caselessKey(value) : value}`;
    case 'token':
      return `claim\0${identifier.name}\0${value}`;
    case 'path':
      return `path\0${identifier.param}\0${value}`;
    case 'body':
      return `body\0${identifier.field}\0${value}`;
    case 'network':
      return `network\0${identifier.name}\0${value}`;
    case 'host':
      return `host\0${value}`;
    case 'everyone':
      return 'everyone';
    default:
      return identifier satisfies never;
  }
}
