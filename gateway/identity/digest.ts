/**
 * Who is counted, without knowing who it is: an address or a credential becomes an HMAC-SHA-256 under a secret salt, cut
 * to 16 bytes. Only that digest reaches the store, the log or a metric, and nothing here keeps what it stands for.
 */
import { hash } from 'node:crypto';
import type { SimpleIdentifier } from './identifier.ts';

/** One counted client. It lives as long as its request or its connection; what is known of it is in a table by digest. */
export interface Identity {
  /** 22 characters, base64url: 16 bytes. */
  readonly digest: string;
  /** The digest's first 120 bits, 30 in each: the key of flat tables. */
  readonly words: DigestWords;
}

export type DigestWords = readonly [number, number, number, number];

const BLOCK_BYTES = 64;
const DIGEST_LENGTH = 22;
const WORD_LENGTH = 5;

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** What each character of it stands for. */
const SEXTETS = new Uint8Array(128);
for (let value = 0; value < BASE64URL.length; value++) SEXTETS[BASE64URL.charCodeAt(value)] = value;

function word(digest: string, at: number): number {
  let value = 0;
  for (let i = at; i < at + WORD_LENGTH; i++) value = (value << 6) | (SEXTETS[digest.charCodeAt(i)] ?? 0);
  return value;
}

/** Cut as text: of the last character only two bits belong to them. */
function first16Bytes(hash: string): string {
  const last = SEXTETS[hash.charCodeAt(DIGEST_LENGTH - 1)] ?? 0;
  return hash.slice(0, DIGEST_LENGTH - 1) + BASE64URL.charAt(last & 0b110000);
}

/** @param digest 22 characters of base64url */
export function identityOf(digest: string): Identity {
  return { digest, words: [word(digest, 0), word(digest, 5), word(digest, 10), word(digest, 15)] };
}

/**
 * HMAC (RFC 2104) from two one-shot hashes: half the time of `createHmac`, which makes an object for each.
 * Addresses are one space whatever the identifier is called; credentials are told apart by it. Neither can pass for the
 * other: a key that reads like somebody's address is not that address.
 */
export class Digester {
  readonly #inner: string;
  readonly #outer: Buffer;

  /** @param salt any length; whoever knows it can test guesses against digests */
  constructor(salt: string) {
    // A hash in hexadecimal is ASCII of one block's length, so that the inner padding survives as text.
    const key = Buffer.from(hash('sha256', salt, 'hex'), 'latin1');
    this.#inner = Buffer.from(key.map((byte) => byte ^ 0x36)).toString('latin1');
    this.#outer = Buffer.alloc(BLOCK_BYTES + 32);
    this.#outer.set(key.map((byte) => byte ^ 0x5c));
  }

  /** @param value the normalized address, the credential or the path parameter */
  identify(identifier: SimpleIdentifier, value: string): Identity {
    return this.#digest(subjectOf(identifier, value));
  }

  /** One identity from several, in their order. */
  combine(identities: readonly Identity[]): Identity {
    return this.#digest(`combined\0${identities.map(({ digest }) => digest).join('\0')}`);
  }

  #digest(subject: string): Identity {
    this.#outer.write(hash('sha256', this.#inner + subject, 'latin1'), BLOCK_BYTES, 'latin1');
    return identityOf(first16Bytes(hash('sha256', this.#outer, 'base64url')));
  }
}

function subjectOf(identifier: SimpleIdentifier, value: string): string {
  switch (identifier.kind) {
    case 'address':
      return `address\0${value}`;
    case 'credential':
      return `credential\0${identifier.name}\0${value}`;
    case 'token':
      return `claim\0${identifier.name}\0${value}`;
    case 'path':
      return `path\0${identifier.param}\0${value}`;
    default:
      return identifier satisfies never;
  }
}
