/**
 * An agent for HAProxy's SPOE filter. HAProxy keeps connections open, and asks about many requests at a time on each
 * connection. An answer sets variables of HAProxy's transaction.
 */
import type { Socket } from 'node:net';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { lingeringClose } from '#gateway/http/lingering-close.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { type Look, readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Millis } from '#shared/clock.ts';
import { type BadAuthorizationRequest, bad, longMethod, METHOD_TOKEN } from './authorization-request.ts';
import { UNTRUSTED } from './checked-request.ts';
import { type Answer, type Described, type DescribedOptions, decideDescribed } from './described-request.ts';
import * as spop from './spop.ts';

/** Same limit as for an authorization request over HTTP. HAProxy's buffers have 16 KiB by default. */
const FRAME_BYTES_MAX = 65_536;
/** Maximum number of unanswered requests on one connection. At this number, the agent stops reading. */
const UNANSWERED_MAX = 1024;
const FIELDS_MAX = 128;

export interface AgentOptions extends DescribedOptions {
  /** Time limit for the first byte, for the rest of a frame, and for HAProxy to read answers. */
  readonly peerMs: Millis;
}

/** @param toHttp takes a connection that does not speak SPOP */
export function openConnection(
  connection: ClientConnection,
  options: AgentOptions,
  toHttp: () => void,
): void {
  const { socket } = connection;
  connection.closeIdle = () => socket.destroy();
  socket.on('error', () => socket.destroy());
  // A frame begins with its length, so its first byte is 0. No HTTP request begins with 0.
  const look: Look = ([first]) => (first === 0 ? 0 : 'bad');
  readFirstBytes(socket, options.peerMs, look, (found) => {
    connection.closeIdle = null;
    if (found === 'good') {
      const agent = new AgentConnection(connection, options);
      connection.closeIdle = () => agent.drain();
    } else if (found === 'bad') toHttp();
    else socket.destroy();
  });
}

class AgentConnection {
  readonly #socket: Socket;
  readonly #origin: RequestOrigin;
  readonly #options: AgentOptions;
  #frameBytesMax = FRAME_BYTES_MAX;
  /** Length of the frame that is being read; 0: not known yet. */
  #length = 0;
  #hasHello = false;
  /** Requests whose answers are not written yet. */
  #unanswered = 0;
  /** Answers that are written at the end of this turn of the event loop. */
  #answers: string[] = [];
  /** How often `drain` was called. */
  #drains = 0;
  /** Runs while HAProxy must send the rest of a frame or read answers. */
  #timer: NodeJS.Timeout | undefined;

  constructor({ socket, origin }: ClientConnection, options: AgentOptions) {
    this.#socket = socket;
    this.#origin = origin;
    this.#options = options;
    socket.on('readable', () => this.#readFrames()).on('drain', () => this.#readFrames());
    socket.once('end', () => this.#end('')).once('close', () => this.#stopTimer());
    if (origin.trusted) this.#readFrames();
    else this.#fail(new spop.FrameError(99, UNTRUSTED));
  }

  /**
   * After the first call, new requests are still answered, and the connection ends when none is unanswered. After the
   * second call, new requests are no longer read.
   */
  drain(): void {
    this.#drains++;
    this.#readFrames();
  }

  get #isReading(): boolean {
    const { writable, writableNeedDrain } = this.#socket;
    return writable && !writableNeedDrain && this.#unanswered < UNANSWERED_MAX && this.#drains < 2;
  }

  #readFrames(): void {
    const socket = this.#socket;
    try {
      while (this.#isReading) {
        const expected = this.#length || 4;
        const bytes: Buffer | null = socket.read(expected);
        // At the end of the stream, read() may return fewer bytes.
        if (bytes === null || bytes.length < expected) break;
        const isLength = this.#length === 0;
        this.#length = isLength ? this.#lengthIn(bytes) : 0;
        if (!isLength) this.#take(spop.readFrame(bytes));
      }
    } catch (error) {
      if (!(error instanceof spop.FrameError)) throw error;
      this.#fail(error);
    }
    if (this.#drains > 0 && this.#unanswered === 0)
      this.#end(spop.writeDisconnect(0, 'the gateway is shutting down'));
    const isPartial = this.#isReading && this.#length + socket.readableLength > 0;
    if (!isPartial && !socket.writableNeedDrain) this.#stopTimer();
    else this.#timer ??= setTimeout(() => this.#fail(TOO_SLOW), this.#options.peerMs);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #lengthIn(bytes: Buffer): number {
    const length = bytes.readUInt32BE();
    const most = this.#frameBytesMax;
    if (length < 1 || length > most) throw new spop.FrameError(3, `a frame must have 1 to ${most} bytes`);
    return length;
  }

  #take(frame: spop.Frame): void {
    this.#stopTimer();
    if ((frame.kind === 'hello') === this.#hasHello)
      throw new spop.FrameError(4, 'a connection must begin with one HELLO');
    if (frame.kind === 'disconnect') this.#end(spop.writeDisconnect(0, 'HAProxy has disconnected'));
    else if (frame.kind === 'notify') {
      this.#unanswered++;
      const reply = (answer: Answer): void => this.#answer(frame.ids, answer);
      decideDescribed(describedBy(frame.args), this.#origin, this.#options, reply);
    } else if (frame.kind === 'hello') {
      this.#hasHello = true;
      this.#frameBytesMax = Math.min(frame.frameBytesMax, FRAME_BYTES_MAX);
      const hello = spop.writeHello(this.#frameBytesMax);
      if (frame.isHealthCheck) this.#end(hello);
      else this.#socket.write(hello, 'latin1');
    }
  }

  #answer(ids: string, answer: Answer): void {
    if (this.#answers.length === 0) setImmediate(() => this.#flush());
    const ack = spop.writeAck(ids, actionsOf(answer));
    const isTooBig = ack.length - 4 > this.#frameBytesMax;
    // If the answer is too large, send only the status, without body and limit headers.
    this.#answers.push(isTooBig ? spop.writeAck(ids, spop.setVariable('status', answer.status)) : ack);
  }

  #flush(): void {
    if (!this.#socket.writable) return;
    this.#unanswered -= this.#answers.length;
    this.#socket.write(this.#answers.join(''), 'latin1');
    this.#answers = [];
    this.#readFrames();
  }

  #fail({ status, message }: spop.FrameError): void {
    this.#options.onBadRequest(message);
    this.#end(spop.writeDisconnect(status, message));
  }

  #end(frame: string): void {
    this.#socket.removeAllListeners('readable');
    lingeringClose(this.#socket, Buffer.from(this.#answers.join('') + frame, 'latin1'));
  }
}

const TOO_SLOW = new spop.FrameError(
  2,
  'HAProxy did not send the rest of a frame, or did not read the answers, in time',
);

/**
 * Header fields to ignore: those about the framing of the message, and an address that the argument `client` replaces.
 */
const DROPPED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'transfer-encoding',
  'x-forwarded-for',
]);

function describedBy(args: spop.Values | null): Described | BadAuthorizationRequest {
  if (args === null) return bad('the SPOE group has more than one message; leave one');
  const [method, uri, client, headers] = ['method', 'uri', 'client', 'headers'].map((name) => args.get(name));
  if (typeof method !== 'string' || !METHOD_TOKEN.test(method)) return missing('method=method');
  const long = longMethod(method);
  if (long !== null) return long;
  if (uri === undefined) return missing('uri=pathq');
  if (typeof client !== 'string' || client.trim() === '') return missing('client=src');
  if (typeof headers !== 'string') return missing('headers=req.hdrs_bin');
  const rawHeaders = ['x-forwarded-for', client];
  try {
    const sent = spop.headersIn(headers);
    if (sent.length > 2 * FIELDS_MAX)
      return bad(`the header section has more than ${FIELDS_MAX} fields`, 'client');
    for (let i = 0; i < sent.length; i += 2)
      if (!DROPPED.has((sent[i] ?? '').toLowerCase())) rawHeaders.push(sent[i] ?? '', sent[i + 1] ?? '');
  } catch (error) {
    if (error instanceof spop.FrameError) return missing('headers=req.hdrs_bin');
    throw error;
  }
  // HAProxy sends no path for `OPTIONS *`.
  return { ok: true, method, target: String(uri ?? '*'), rawHeaders };
}

function missing(argument: string): BadAuthorizationRequest {
  return bad(`the SPOE message lacks an argument; add ${argument} to its args`);
}

function actionsOf({ status, headers, body }: Answer): string {
  let actions = spop.setVariable('status', status);
  if (body !== '') actions += spop.setVariable('body', body);
  for (let i = 0; i < headers.length; i += 2)
    actions += spop.setVariable((headers[i] ?? '').replaceAll('-', '_'), headers[i + 1] ?? '');
  return actions;
}
