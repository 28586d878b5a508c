/**
 * An agent for HAProxy's SPOE filter. HAProxy keeps connections open, and asks about many requests at a time on each. An
 * answer sets variables of the transaction.
 */
import type { Socket } from 'node:net';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { HOP_BY_HOP } from '#gateway/http/hop-by-hop.ts';
import { lingeringClose } from '#gateway/http/lingering-close.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Millis } from '#shared/clock.ts';
import { type BadAuthorizationRequest, bad, METHOD_TOKEN } from './authorization-request.ts';
import { UNTRUSTED } from './checked-request.ts';
import { type Answer, type Described, type DescribedOptions, decideDescribed } from './described-request.ts';
import * as spop from './spop.ts';

/** Same as for the header section of an authorization request over HTTP. HAProxy's buffers have 16 KiB by default. */
const FRAME_BYTES_MAX = 65_536;
/** Type, flags and two ids. */
const FRAME_BYTES_MIN = 7;
/** Requests of one connection that wait for their answer. What comes after them is not read yet. */
const UNANSWERED_MAX = 1024;
const FIELDS_MAX = 128;
const PEER_MS: Millis = 10_000;

export class HaproxyAgent {
  readonly #options: DescribedOptions;
  readonly #peerMs: Millis;
  /** One for each connection, except for those that speak HTTP. */
  readonly #closers = new Map<Socket, () => void>();

  /** @param peerMs for the first byte, for the rest of a frame, and for reading answers */
  constructor(options: DescribedOptions, peerMs: Millis = PEER_MS) {
    this.#options = options;
    this.#peerMs = peerMs;
  }

  /** @param toHttp takes a connection that does not speak SPOP */
  open({ socket, origin }: ClientConnection, toHttp: () => void): void {
    // A frame begins with its length, so its first byte is 0. No HTTP begins with it.
    let isSpop = false;
    const look = (bytes: Buffer): number => {
      isSpop = bytes[0] === 0;
      return 0;
    };
    this.#closers.set(socket, () => socket.destroy());
    socket.on('error', () => socket.destroy()).once('close', () => this.#closers.delete(socket));
    readFirstBytes(socket, this.#peerMs, look, (found) => {
      if (found !== 'good') socket.destroy();
      else if (isSpop) {
        const connection = new AgentConnection(socket, origin, this.#options, this.#peerMs);
        this.#closers.set(socket, () => connection.drain());
      } else {
        this.#closers.delete(socket);
        toHttp();
      }
    });
  }

  /** Ends idle connections. Called several times while the gateway shuts down. */
  closeIdle(): void {
    for (const close of this.#closers.values()) close();
  }
}

class AgentConnection {
  readonly #socket: Socket;
  readonly #origin: RequestOrigin;
  readonly #options: DescribedOptions;
  readonly #peerMs: Millis;
  #frameBytesMax = FRAME_BYTES_MAX;
  /** Length of the frame that is being read; 0: not known yet. */
  #length = 0;
  #hasHello = false;
  /** Requests whose answer is not written yet. */
  #unanswered = 0;
  /** Those whose answer is in `#out`. */
  #answered = 0;
  /** Frames that are written at the end of this turn of the event loop. */
  #out = '';
  /** How often `drain` was called. */
  #drains = 0;
  /** Runs while it is HAProxy's turn. */
  #timer: NodeJS.Timeout | undefined;
  readonly #read = (): void => this.#readFrames();

  constructor(socket: Socket, origin: RequestOrigin, options: DescribedOptions, peerMs: Millis) {
    this.#socket = socket;
    this.#origin = origin;
    this.#options = options;
    this.#peerMs = peerMs;
    socket
      .on('readable', this.#read)
      .on('drain', this.#read)
      .once('end', () => this.#end(''))
      .once('close', () => clearTimeout(this.#timer));
    if (origin.trusted) this.#readFrames();
    else this.#fail(new spop.FrameError(99, UNTRUSTED));
  }

  /** First, further requests are still answered, and the connection ends when nothing waits. Then no more are read. */
  drain(): void {
    this.#drains++;
    this.#endIfDrained();
  }

  get #isReading(): boolean {
    const { writable, writableNeedDrain } = this.#socket;
    return writable && !writableNeedDrain && this.#unanswered < UNANSWERED_MAX && this.#drains < 2;
  }

  #readFrames(): void {
    const socket = this.#socket;
    while (this.#isReading) {
      const expected = this.#length === 0 ? 4 : this.#length;
      const bytes: Buffer | null = socket.read(expected);
      // At the end of the connection there may be less.
      if (bytes === null || bytes.length < expected) break;
      try {
        this.#length = this.#length === 0 ? this.#lengthIn(bytes) : this.#take(spop.readFrame(bytes));
      } catch (error) {
        if (!(error instanceof spop.FrameError)) throw error;
        this.#fail(error);
      }
    }
    const isPartial = this.#isReading && this.#length + socket.readableLength > 0;
    const isWaiting = !this.#hasHello || isPartial || socket.writableNeedDrain;
    if (!isWaiting || !socket.writable) this.#stopTimer();
    else this.#timer ??= setTimeout(() => this.#fail(TOO_SLOW), this.#peerMs);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #lengthIn(bytes: Buffer): number {
    const length = bytes.readUInt32BE();
    const most = this.#frameBytesMax;
    if (length > most) throw new spop.FrameError(3, `a frame has more than ${most} bytes`);
    if (length < FRAME_BYTES_MIN) throw new spop.FrameError(4, 'a frame is too short');
    return length;
  }

  /** @returns 0: the length of the next frame is not known yet */
  #take(frame: spop.Frame): 0 {
    this.#stopTimer();
    if (frame.kind === 'disconnect') this.#end(spop.writeDisconnect(0, 'as asked for'));
    if (frame.kind !== 'hello' && frame.kind !== 'notify') return 0;
    if ((frame.kind === 'hello') === this.#hasHello)
      throw new spop.FrameError(4, 'a connection must begin with one HELLO');
    if (frame.kind === 'notify') {
      this.#unanswered++;
      const reply = (answer: Answer): void => this.#answer(frame.ids, answer);
      decideDescribed(describedBy(frame.args), this.#origin, this.#options, reply);
      return 0;
    }
    this.#hasHello = true;
    this.#frameBytesMax = Math.min(frame.frameBytesMax, FRAME_BYTES_MAX);
    this.#write(spop.writeHello(this.#frameBytesMax));
    if (frame.isHealthCheck) this.#end('');
    return 0;
  }

  #answer(ids: string, answer: Answer): void {
    const ack = spop.writeAck(ids, actionsOf(answer));
    const isTooBig = ack.length - 4 > this.#frameBytesMax;
    // Without body and limit headers.
    this.#answered++;
    this.#write(isTooBig ? spop.writeAck(ids, spop.setVariable('status', answer.status)) : ack);
  }

  #write(frame: string): void {
    if (this.#out === '') setImmediate(() => this.#flush());
    this.#out += frame;
  }

  #flush(): void {
    if (!this.#socket.writable) return;
    this.#socket.write(this.#out, 'latin1');
    this.#out = '';
    this.#unanswered -= this.#answered;
    this.#answered = 0;
    this.#endIfDrained();
    this.#readFrames();
  }

  #endIfDrained(): void {
    if (this.#drains > 0 && this.#unanswered === 0 && this.#out === '')
      this.#end(spop.writeDisconnect(0, 'the gateway shuts down'));
  }

  #fail({ status, message }: spop.FrameError): void {
    this.#options.onBadRequest(message);
    this.#end(spop.writeDisconnect(status, message));
  }

  #end(frame: string): void {
    this.#socket.off('readable', this.#read).off('drain', this.#read);
    lingeringClose(this.#socket, Buffer.from(this.#out + frame, 'latin1'));
    this.#stopTimer();
  }
}

const TOO_SLOW = new spop.FrameError(
  2,
  'HAProxy did not send the rest of a frame in time, or did not read its answers',
);

/** Fields of the connection between HAProxy and its client, and those that HAProxy sets itself. */
const DROPPED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

function describedBy(args: spop.Values | null): Described | BadAuthorizationRequest {
  if (args === null) return bad('the SPOE group has more than one message; leave one');
  const [method, uri, client, headers] = ['method', 'uri', 'client', 'headers'].map((name) => args.get(name));
  if (typeof method !== 'string' || !METHOD_TOKEN.test(method)) return missing('method=method');
  if (uri === undefined) return missing('uri=pathq');
  if (typeof client !== 'string' || client.trim() === '') return missing('client=src');
  if (typeof headers !== 'string') return missing('headers=req.hdrs_bin');
  const rawHeaders = ['x-forwarded-for', client];
  try {
    const sent = spop.headersIn(headers);
    if (sent.length > 2 * FIELDS_MAX) return bad(`the header section has more than ${FIELDS_MAX} fields`);
    for (let i = 0; i < sent.length; i += 2)
      if (!DROPPED.has((sent[i] ?? '').toLowerCase())) rawHeaders.push(sent[i] ?? '', sent[i + 1] ?? '');
  } catch (error) {
    if (error instanceof spop.FrameError) return missing('headers=req.hdrs_bin');
    throw error;
  }
  // HAProxy has no path for `OPTIONS *`.
  return { ok: true, method, target: String(uri ?? '*'), rawHeaders };
}

function missing(argument: string): BadAuthorizationRequest {
  return bad(`the SPOE message lacks an argument; add ${argument} to its args`);
}

function actionsOf({ status, headers, body }: Answer): string {
  let actions = spop.setVariable('status', status);
  for (let i = 0; i < headers.length; i += 2)
    actions += spop.setVariable((headers[i] ?? '').replaceAll('-', '_'), headers[i + 1] ?? '');
  return body === '' ? actions : actions + spop.setVariable('body', body);
}
