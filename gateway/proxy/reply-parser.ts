/**
 * Parses HTTP/1.1 replies (RFC 9112) strictly: lines end with CR LF, every field has a name and no folded value, and
 * the length of a body is stated once. Replies that can be read in two ways are refused, because another program could
 * see the start of the next reply elsewhere.
 */
import { CLOSE } from '#gateway/http/hop-by-hop.ts';
import { ChunkReader } from './chunk-reader.ts';
import { BadReplyError, BrokenReplyError, ReplyHeadTooLargeError } from './exchange.ts';
import { fieldsOf, readableFields, switchesTo } from './reply-fields.ts';

/** Limits of the interim replies before the final one, and of their bytes. */
const INTERIM_MAX = 32;
const INTERIM_BYTES_MAX = 65_536;

const PROTOCOL = 'HTTP/1.';
const NO_STATUS_LINE = "the upstream's reply has no status line of HTTP/1.1";
const HEAD_END = Buffer.from('\r\n\r\n');
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
const DIGITS = /^\d{1,15}$/;
const TIMEOUT = /(?:^|,)[ \t]*timeout=(\d{1,9})/i;
const FRAMING = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive']);

type State = 'head' | 'length' | 'until-close' | 'chunks' | 'end' | 'done';

const NOTHING = Buffer.alloc(0);

interface ReplyListener {
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
  /** How many seconds the upstream keeps an idle connection; null if not announced. */
  keepAliveSeconds: number | null = null;
  readonly #headBytesMax: number;
  readonly #listener: ReplyListener;
  #state: State = 'done';
  #isHead = false;
  /** Protocol that was asked for; null if none. */
  #upgrade: string | null = null;
  /** Fields of the reply that switches to it; null before. */
  #switched: readonly string[] | null = null;
  #isUntouched = true;
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

  /** Expects the reply to a request with this method. @param upgrade protocol to switch to; null if none */
  begin(method: string, upgrade: string | null = null): void {
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#upgrade = upgrade;
    this.#isUntouched = true;
    this.#interims = 0;
    this.#interimBytes = 0;
    this.#begun = NOTHING;
    this.isReusable = false;
    this.isSuspect = false;
    this.keepAliveSeconds = null;
  }

  get isInBody(): boolean {
    return this.#state !== 'head' && this.#state !== 'done';
  }

  /** @returns the readable fields of a header section that is not complete or was refused; otherwise nothing */
  begunFields(): readonly string[] {
    if (this.#state !== 'head') return [];
    return readableFields(this.#begun.toString('latin1', 0, this.#headBytesMax));
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
    if (this.#switched !== null) this.#listener.onSwitch(this.#switched, bytes.subarray(at));
    else if (this.#state === 'end') this.#end(at < bytes.length);
    else if (at < bytes.length) throw new BadReplyError('the upstream sends more than its reply');
  }

  /** Called when the upstream has closed the connection. @throws BrokenReplyError if the reply is not complete */
  finish(): void {
    if (this.#state === 'until-close') this.#end(true);
    else if (this.#state !== 'done') throw new BrokenReplyError(this.#isUntouched);
  }

  #end(isMoreThere: boolean): void {
    // Do not reuse the connection, because further bytes could be taken for the next reply.
    if (isMoreThere) this.isReusable = false;
    this.#state = 'done';
    this.#listener.onReplyEnd();
  }

  /** @returns offset after the header section; -1 if it is not complete */
  #readHead(bytes: Buffer, from: number): number {
    if (this.#begun.length === 0) {
      const end = bytes.indexOf(HEAD_END, from);
      if (end >= 0) {
        this.#takeHead(bytes.toString('latin1', from, end));
        return end + HEAD_END.length;
      }
      this.#begun = Buffer.from(bytes.subarray(from));
      this.#checkBegun();
      return -1;
    }
    const before = this.#begun.length;
    const head = Buffer.concat([this.#begun, bytes.subarray(from)]);
    const end = head.indexOf(HEAD_END, Math.max(0, before - HEAD_END.length + 1));
    if (end >= 0) {
      this.#begun = head;
      this.#takeHead(head.toString('latin1', 0, end));
      this.#begun = NOTHING;
      return from + end + HEAD_END.length - before;
    }
    this.#begun = head;
    this.#checkBegun();
    return -1;
  }

  /** Checks an incomplete header section: its size, and that it begins like a reply. */
  #checkBegun(): void {
    this.#checkHeadSize(this.#begun.length);
    const start = this.#begun.toString('latin1', 0, PROTOCOL.length);
    if (!PROTOCOL.startsWith(start)) throw new BadReplyError(NO_STATUS_LINE);
  }

  #checkHeadSize(bytes: number): void {
    if (bytes > this.#headBytesMax) throw new ReplyHeadTooLargeError(this.#headBytesMax);
  }

  /** @param text the header section without the empty line */
  #takeHead(text: string): void {
    this.#checkHeadSize(text.length);
    const lineEnd = text.indexOf('\r\n');
    const [, minor, code, reason = ''] = STATUS_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd)) ?? [];
    if (code === undefined) throw new BadReplyError(NO_STATUS_LINE);
    const status = Number(code);
    const headers = lineEnd < 0 ? [] : fieldsOf(text, lineEnd + 2);
    if (status === 101) {
      if (!switchesTo(this.#upgrade, headers))
        throw new BadReplyError('the upstream switched protocols without being asked');
      this.#switched = headers;
      this.#state = 'done';
      return;
    }
    if (status < 200) {
      this.#interimBytes += text.length;
      if (++this.#interims > INTERIM_MAX || this.#interimBytes > INTERIM_BYTES_MAX)
        throw new BadReplyError('the upstream sends too many interim replies');
      // The gateway itself asks clients for their bodies.
      if (status !== 100) this.#listener.onInterim(status, reason, headers);
      return;
    }
    this.#frame(status, minor === '1', headers);
    this.#listener.onHead(status, reason, headers);
  }

  /** Determines the length of the body (RFC 9112 6.3) and whether the connection persists (9.3). */
  #frame(status: number, isHttp11: boolean, headers: readonly string[]): void {
    let length: number | null = null;
    let coding: string | null = null;
    let isKept = isHttp11;
    for (let i = 0; i < headers.length; i += 2) {
      const name = (headers[i] ?? '').toLowerCase();
      if (!FRAMING.has(name)) continue;
      const value = headers[i + 1] ?? '';
      if (name === 'connection') isKept &&= !CLOSE.test(value);
      else if (name === 'keep-alive') {
        const seconds = TIMEOUT.exec(value)?.[1];
        if (seconds !== undefined) this.keepAliveSeconds = Number(seconds);
      } else if (name === 'transfer-encoding') coding = coding === null ? value : `${coding}, ${value}`;
      else {
        if (length !== null || !DIGITS.test(value))
          throw new BadReplyError("the length of the upstream's reply is not one number");
        length = Number(value);
      }
    }
    // The socket of a request for a protocol switch is a stream, which other requests do not use.
    this.isReusable = isKept && this.#upgrade === null;
    if (this.#isHead || status === 204 || status === 304) {
      this.isSuspect = this.#isHead || coding !== null || (length ?? 0) > 0;
      this.isReusable &&= !this.isSuspect;
      this.#state = 'end';
    } else if (coding !== null) {
      if (length !== null) throw new BadReplyError("the upstream's reply says its length twice");
      if (!isHttp11) throw new BadReplyError("the upstream's reply is of HTTP/1.0 and has a transfer coding");
      const isChunked = coding.toLowerCase() === 'chunked';
      this.isReusable &&= isChunked;
      this.#state = isChunked ? 'chunks' : 'until-close';
      this.#chunks.begin();
    } else if (length === null) {
      this.isReusable = false;
      this.#state = 'until-close';
    } else {
      this.#left = length;
      this.#state = length === 0 ? 'end' : 'length';
    }
  }

  /** @returns offset of the first unread byte: the end of `bytes` or of the reply */
  #readBody(bytes: Buffer, from: number): number {
    if (this.#state === 'until-close') {
      this.#listener.onPiece(from === 0 ? bytes : bytes.subarray(from));
      return bytes.length;
    }
    if (this.#state === 'length') {
      const to = Math.min(bytes.length, from + this.#left);
      this.#left -= to - from;
      if (this.#left === 0) this.#state = 'end';
      this.#listener.onPiece(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
      return to;
    }
    if (this.#state !== 'chunks') return from;
    const to = this.#chunks.read(bytes, from, this.#listener);
    if (this.#chunks.isDone) this.#state = 'end';
    return to;
  }
}
