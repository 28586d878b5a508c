/**
 * Parses HTTP/1.1 replies (RFC 9112). What violates the grammar is read as tolerantly as NGINX reads it if it can be read
 * in one way only. Its connection is not used again, because its sender may see the end of the reply elsewhere. Replies
 * that can be read in two ways are refused at once, because another program could see the start of the next reply there.
 */
import { CLOSE } from '#gateway/http/hop-by-hop.ts';
import { ChunkReader } from './chunk-reader.ts';
import { BadReplyError, BrokenReplyError } from './exchange.ts';
import { joinLengths, switchesTo } from './reply-fields.ts';
import { checkBegun, type ReplyHead, readHead } from './reply-head.ts';

/** Limits of the interim replies before the final one, and of their bytes. */
const INTERIM_MAX = 32;
const INTERIM_BYTES_MAX = 65_536;

const DIGITS = /^\d{1,15}$/;
/** A Keep-Alive field of a sender that may close the connection just when the next request is sent. */
const CLOSES_SOON = /(?:^|,)[ \t]*timeout=[01](?!\d)/i;
const FRAMING = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive']);

type State = 'head' | 'length' | 'until-close' | 'chunks' | 'end' | 'done';

const NOTHING = Buffer.alloc(0);

export interface ReplyListener {
  /** Called for each interim reply but 100 and 101 (RFC 9110 15.2). */
  onInterim(status: number, reason: string, headers: readonly string[]): void;
  /** Called for the final reply. */
  onHead(status: number, reason: string, headers: readonly string[]): void;
  /** @param piece part of the buffer that was passed to `read` */
  onPiece(piece: Buffer): void;
  onReplyEnd(): void;
  /** Called if the upstream switches to the protocol that was asked for. @param early bytes behind the reply */
  onSwitch(headers: readonly string[], early: Buffer): void;
}

export class ReplyParser {
  /** Whether the connection can be used again after this reply. */
  isReusable = false;
  /** Whether a body may follow, although the reply must not have one: some applications send it, even much later. */
  isSuspect = false;
  readonly #headBytesMax: number;
  /** null once nobody wants the rest. */
  #listener: ReplyListener | null;
  #state: State = 'done';
  #isHead = false;
  /** Protocols that were offered; null if none. */
  #upgrade: string | null = null;
  /** Fields of the reply that switches to it; null before. */
  #switched: readonly string[] | null = null;
  #isUntouched = true;
  /** Whether all heads so far obey the grammar. */
  #isStrict = true;
  #interims = 0;
  #interimBytes = 0;
  /** Start of an incomplete header section. */
  #begun: Buffer = NOTHING;
  /** Remaining bytes of the body. */
  #left = 0;
  readonly #chunks = new ChunkReader();

  constructor(headBytesMax: number, listener: ReplyListener) {
    this.#headBytesMax = headBytesMax;
    this.#listener = listener;
  }

  /** Nothing is told any more, even in the middle of `read`. */
  stop(): void {
    this.#listener = null;
  }

  /** Expects the reply to a request with this method. @param upgrade protocols that it offers; null if none */
  begin(method: string, upgrade: string | null = null): void {
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#upgrade = upgrade;
    this.#isUntouched = true;
    this.#isStrict = true;
    this.#interims = 0;
    this.#interimBytes = 0;
    this.#begun = NOTHING;
    this.isReusable = false;
    this.isSuspect = false;
  }

  get isInBody(): boolean {
    return this.#state !== 'head' && this.#state !== 'done';
  }

  /** Whether a header section has begun that is not complete or was refused. */
  get hasBegunHead(): boolean {
    return this.#state === 'head' && this.#begun.length > 0;
  }

  /**
   * @param bytes are modified: the data of chunks is moved together, so that it becomes one piece
   * @throws BadReplyError if the connection cannot be used any more
   */
  read(bytes: Buffer): void {
    this.#isUntouched = false;
    let at = 0;
    while (this.#state === 'head') {
      try {
        at = this.#readHead(bytes, at);
      } catch (error) {
        if (this.#begun.length === 0) this.#begun = Buffer.from(bytes.subarray(at));
        throw error;
      }
      if (at < 0) return;
    }
    if (at < bytes.length) at = this.#readBody(bytes, at);
    if (this.#switched !== null) this.#listener?.onSwitch(this.#switched, bytes.subarray(at));
    else if (this.#state === 'end') this.#end(at < bytes.length);
    else if (at < bytes.length) throw new BadReplyError('the upstream sends more than its reply');
  }

  /** Called when the upstream has closed the connection. @throws BrokenReplyError if the reply is not complete */
  finish(): void {
    const hasLastChunk = this.#state === 'chunks' && this.#chunks.hasLastChunk;
    if (this.#state === 'until-close' || hasLastChunk) this.#end(true);
    else if (this.#state !== 'done') throw new BrokenReplyError(this.#isUntouched);
  }

  #end(isMoreThere: boolean): void {
    // Do not reuse the connection, because further bytes could be taken for the next reply.
    if (isMoreThere) this.isReusable = false;
    this.#state = 'done';
    this.#listener?.onReplyEnd();
  }

  /** @returns offset after the header section; -1 if it is not complete */
  #readHead(bytes: Buffer, from: number): number {
    const before = this.#begun.length;
    const section = before === 0 ? bytes : Buffer.concat([this.#begun, bytes.subarray(from)]);
    if (before > 0) this.#begun = section;
    const head = readHead(section, before === 0 ? from : 0, before, this.#headBytesMax);
    if (head === null) {
      if (before === 0) this.#begun = Buffer.from(bytes.subarray(from));
      checkBegun(this.#begun, before, this.#headBytesMax);
      return -1;
    }
    this.#takeHead(head);
    this.#begun = NOTHING;
    return before === 0 ? head.end : from + head.end - before;
  }

  #takeHead(head: ReplyHead): void {
    const { status, reason, headers } = head;
    this.#isStrict &&= head.isStrict;
    if (status === 101) {
      if (!switchesTo(this.#upgrade, headers))
        throw new BadReplyError('the upstream switched protocols without being asked');
      this.#switched = headers;
      this.#state = 'done';
      return;
    }
    if (status < 200) {
      this.#interimBytes += head.bytes;
      if (++this.#interims > INTERIM_MAX || this.#interimBytes > INTERIM_BYTES_MAX)
        throw new BadReplyError('the upstream sends too many interim replies');
      // The gateway itself asks clients for their bodies.
      if (status !== 100) this.#listener?.onInterim(status, reason, headers);
      return;
    }
    this.#frame(head);
    this.#listener?.onHead(status, reason, headers);
  }

  /** Determines the length of the body (RFC 9112 6.3) and whether the connection persists (9.3). */
  #frame({ status, isHttp11, headers }: ReplyHead): void {
    let length: number | null = null;
    let isRepeated = false;
    let coding: string | null = null;
    let isKept = isHttp11 && this.#isStrict;
    for (let i = 0; i < headers.length; i += 2) {
      const name = (headers[i] ?? '').toLowerCase();
      if (!FRAMING.has(name)) continue;
      const value = headers[i + 1] ?? '';
      if (name === 'connection') isKept &&= !CLOSE.test(value);
      else if (name === 'keep-alive') isKept &&= !CLOSES_SOON.test(value);
      else if (name === 'transfer-encoding') coding = coding === null ? value : `${coding}, ${value}`;
      else if (length === null && DIGITS.test(value)) length = Number(value);
      else isRepeated = true;
    }
    if (isRepeated) {
      length = joinLengths(headers);
      isKept = false;
    }
    // RFC 2616 had this name for no coding.
    if (coding?.toLowerCase() === 'identity') {
      coding = null;
      isKept = false;
    }
    if (coding !== null && coding.toLowerCase() !== 'chunked')
      throw new BadReplyError("the upstream's reply has a transfer coding that was not asked for");
    // The socket of a request for a protocol switch is a stream, which other requests do not use.
    this.isReusable = isKept && this.#upgrade === null;
    if (this.#isHead || status === 204 || status === 304) {
      this.isSuspect = this.#isHead || coding !== null || (length ?? 0) > 0;
      this.isReusable &&= !this.isSuspect;
      this.#state = 'end';
    } else if (coding !== null) {
      if (length !== null) throw new BadReplyError("the upstream's reply says its length twice");
      this.#state = 'chunks';
      this.#chunks.begin();
    } else if (length === null) {
      this.isReusable = false;
      this.#state = 'until-close';
    } else {
      this.#left = length;
      this.#state = length === 0 ? 'end' : 'length';
    }
  }

  onPiece(piece: Buffer): void {
    this.#listener?.onPiece(piece);
  }

  /** @returns offset of the first unread byte: the end of `bytes` or of the reply */
  #readBody(bytes: Buffer, from: number): number {
    if (this.#state === 'until-close') {
      this.onPiece(from === 0 ? bytes : bytes.subarray(from));
      return bytes.length;
    }
    if (this.#state === 'length') {
      const to = Math.min(bytes.length, from + this.#left);
      this.#left -= to - from;
      if (this.#left === 0) this.#state = 'end';
      this.onPiece(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
      return to;
    }
    if (this.#state !== 'chunks') return from;
    const to = this.#chunks.read(bytes, from, this);
    this.isReusable &&= this.#chunks.isStrict;
    if (this.#chunks.isDone) this.#state = 'end';
    return to;
  }
}
