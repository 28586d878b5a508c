/**
 * Ids of refusals. An id says which policy refused, when, and in which process, so an operator can explain a refusal
 * that was not stored. It is one encrypted block, so it tells the client nothing. The key is derived from the salt of
 * the identities: all gateways with the same salt can read the id.
 *
 * Ids are read out on the telephone, so they have no upper case and no letters that look alike.
 *
 * The block has 22 zero bits, by which made-up ids are recognized, then 10 bits of the digest of the policy file's
 * version, 24 of that of the policy's name, 4 for the kind of refusal, 4 of a counter, 32 for the time in seconds, 16
 * of the digest of the process's name, and 16 of the counter.
 */
import { type Cipheriv, createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const CODES = Buffer.from(ALPHABET);
const BLOCK_BYTES = 16;

/** 16 bytes in characters of five bits. */
export const DECISION_ID_LENGTH = 26;

const DECISION_ID = new RegExp(`^[${ALPHABET}]{${DECISION_ID_LENGTH}}$`);

export function isDecisionId(text: string): boolean {
  return DECISION_ID.test(text);
}

/**
 * unavailable: the store is unavailable, and the policy has `onStoreFailure: deny`. listed: the list deny names the
 * client. banned: a ban of an operator or a policy. busy: a bound of the gateway is reached.
 */
export type RefusalKind = 'deny' | 'unavailable' | 'listed' | 'banned' | 'busy';

const KINDS: readonly RefusalKind[] = ['deny', 'unavailable', 'listed', 'banned', 'busy'];
const ALGORITHM = 'aes-128-ecb';
const COUNTS = 2 ** 20;
/** Maximum number of ids that are encrypted with one call. A kept id keeps the text of all of them. */
const BATCH_MAX = 32;

interface Reason {
  readonly decision: RefusalKind;
  /** Name of the policy, list, ban or bound. */
  readonly policy: string;
  readonly isUnproven: boolean;
}

/** Ids for refusals of one kind within one second. */
interface Stock {
  readonly version: string;
  /** The first two words of the block, without the counter. */
  readonly words: readonly [number, number];
  size: number;
  ids: string;
  next: number;
}

export class DecisionIds {
  readonly #replica: number;
  readonly #blocks = Buffer.alloc(BATCH_MAX * BLOCK_BYTES);
  #salt: string;
  #cipher: Cipheriv;
  #counter: number;
  #second = 0;
  /** Stocks of the current second, by policy and kind. */
  readonly #stocks = new Map<string, Stock[]>();

  /** @param replica unique name of this process */
  constructor(salt: string, replica: string) {
    this.#salt = salt;
    this.#cipher = createCipheriv(ALGORITHM, keyOf(salt), null);
    this.#replica = bitsOf(replica, 16);
    // Two processes whose names have the same bits are unlikely to count alike.
    this.#counter = bitsOf(`counter of ${replica}`, 20);
  }

  useSalt(salt: string): void {
    if (salt === this.#salt) return;
    this.#salt = salt;
    this.#cipher = createCipheriv(ALGORITHM, keyOf(salt), null);
    this.#stocks.clear();
  }

  /** @param version of the policy file @param now by the wall clock */
  next({ decision, policy, isUnproven }: Reason, version: string, now: Millis): string {
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#stocks.clear();
    }
    let stocks = this.#stocks.get(policy);
    if (stocks === undefined) {
      stocks = [];
      this.#stocks.set(policy, stocks);
    }
    const kind = 2 * KINDS.indexOf(decision) + (isUnproven ? 1 : 0);
    let stock = stocks[kind];
    if (stock?.version !== version) {
      stock = newStock(policy, kind, version);
      stocks[kind] = stock;
    }
    if (stock.next === stock.ids.length) this.#fill(stock);
    const { next } = stock;
    stock.next += DECISION_ID_LENGTH;
    return stock.ids.slice(next, stock.next);
  }

  /** Encrypting one id takes about a microsecond, and each further one of a batch a tenth of that. */
  #fill(stock: Stock): void {
    const { words, size } = stock;
    for (let at = 0; at < size * BLOCK_BYTES; at += BLOCK_BYTES) {
      this.#counter = (this.#counter + 1) % COUNTS;
      this.#blocks.writeUInt32BE(words[0], at);
      this.#blocks.writeUInt32BE(words[1] + Math.floor(this.#counter / 2 ** 16), at + 4);
      this.#blocks.writeUInt32BE(this.#second % 2 ** 32, at + 8);
      this.#blocks.writeUInt16BE(this.#replica, at + 12);
      this.#blocks.writeUInt16BE(this.#counter % 2 ** 16, at + 14);
    }
    stock.ids = textOf(this.#cipher.update(this.#blocks.subarray(0, size * BLOCK_BYTES)));
    stock.next = 0;
    stock.size = Math.min(2 * size, BATCH_MAX);
  }
}

function newStock(policy: string, kind: number, version: string): Stock {
  const words = [bitsOf(version, 10), bitsOf(policy, 24) * 2 ** 8 + kind * 2 ** 4] as const;
  return { version, words, size: 1, ids: '', next: 0 };
}

/** What an id says. Names are known by a part of their digest only. */
export interface ReadId {
  /** The second of the refusal, in milliseconds. */
  readonly at: Millis;
  readonly decision: RefusalKind;
  readonly isUnproven: boolean;
  isOfPolicy(name: string): boolean;
  isOfVersion(version: string): boolean;
  isOfReplica(name: string): boolean;
}

/** @returns null if the id was not made with this salt */
export function readDecisionId(id: string, salt: string): ReadId | null {
  const decipher = createDecipheriv(ALGORITHM, keyOf(salt), null).setAutoPadding(false);
  const block = decipher.update(bytesOf(id));
  const version = block.readUInt32BE(0);
  const kind = block.readUInt8(7) >> 4;
  const decision = KINDS[kind >> 1];
  if (version >= 2 ** 10 || decision === undefined) return null;
  return {
    at: block.readUInt32BE(8) * 1000,
    decision,
    isUnproven: kind % 2 === 1,
    isOfPolicy: (name) => bitsOf(name, 24) === block.readUIntBE(4, 3),
    isOfVersion: (name) => bitsOf(name, 10) === version,
    isOfReplica: (name) => bitsOf(name, 16) === block.readUInt16BE(12),
  };
}

function keyOf(salt: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', salt, '', 'floodgate decision ids', BLOCK_BYTES));
}

function bitsOf(name: string, bits: number): number {
  return hash('sha256', name, 'buffer').readUInt32BE(0) >>> (32 - bits);
}

function textOf(blocks: Buffer): string {
  const text = Buffer.allocUnsafe((blocks.length / BLOCK_BYTES) * DECISION_ID_LENGTH);
  let length = 0;
  for (let at = 0; at < blocks.length; at += BLOCK_BYTES) {
    let value = 0;
    let bits = 0;
    for (let i = at; i < at + BLOCK_BYTES; i++) {
      value = ((value << 8) | (blocks[i] ?? 0)) & 0xffff;
      bits += 8;
      while (bits >= 5) {
        bits -= 5;
        text[length++] = CODES[(value >> bits) & 31] ?? 0;
      }
    }
    text[length++] = CODES[(value << (5 - bits)) & 31] ?? 0;
  }
  return text.toString('latin1');
}

function bytesOf(id: string): Uint8Array {
  const bytes = new Uint8Array(BLOCK_BYTES);
  let value = 0;
  let bits = 0;
  let length = 0;
  for (const character of id) {
    value = ((value << 5) | ALPHABET.indexOf(character)) & 0xffff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[length++] = value >> bits;
    }
  }
  return bytes;
}
