/**
 * Sends the head of a request and its body to the upstream while the body arrives: in turn with other bodies, and no
 * faster than the upstream reads.
 */
import type { Socket } from 'node:net';
import type { Client } from '#gateway/bounds/clients.ts';
import { JOINED_BYTES_MAX, type RequestBody } from '#gateway/http/request-body.ts';
import { Flow, type TransferScheduler } from './transfer-scheduler.ts';

/** Connections to the upstream are scarce, so bodies up to this size are received before one is taken. */
export const AWAITED_BYTES_MAX = 16_384;

/** Bytes of a body that take as much memory as a waiting request. They take another place. */
const PLACE_BYTES = 8192;
/** An upload waits with 16 KiB that did not suffice to stop reading, and one read of 64 KiB. */
export const UPLOAD_PLACES = 11;

/** Returns how many places a request takes that waits with this body. */
export function placesFor(body: RequestBody | null): number {
  return 1 + Math.floor((body?.waitingBytes ?? 0) / PLACE_BYTES);
}

export interface BodyOwner {
  readonly client: Client;
  readonly upstream: { readonly scheduler: TransferScheduler };
  /** Called when the upstream has to read before more is sent, and when it has read. */
  onBodyBlocked(isBlocked: boolean): void;
  /** Called when the whole body was passed to the connection. */
  onBodyEnd(): void;
}

/** The connection that the body is sent on. */
interface Sink {
  readonly socket: Pick<Socket, 'write' | 'cork' | 'uncork' | 'writableLength' | 'writableNeedDrain'>;
  /** The head of the request. It announces chunks, or a length. */
  readonly head: string;
  readonly isChunked: boolean;
  /** Called before the first byte is written. */
  readonly onBegin: () => void;
  /** Called when everything is written. */
  readonly onSent: () => void;
}

export class Upload {
  readonly #body: RequestBody;
  readonly #owner: BodyOwner;
  readonly #flow: Flow;
  /** null before the start and after the end. */
  #sink: Sink | null = null;
  /** Text before the next part: the head, or the end of the chunk before it. */
  #before = '';
  /** Whether the rest of the event-loop tick is awaited, so that small pieces are sent together. */
  #isJoining = false;
  #piecesPassed = 0;

  constructor(body: RequestBody, owner: BodyOwner) {
    this.#body = body;
    this.#owner = owner;
    const source = { pause: () => undefined, resume: () => this.#send() };
    this.#flow = new Flow(owner.client, owner.upstream.scheduler, source);
  }

  /** Called once, when the connection is ready. The head goes with the first part, or alone if none is there. */
  start(sink: Sink): void {
    this.#sink = sink;
    this.#before = sink.head;
    this.#body.onArrival = this.#onArrival;
    this.#onArrival();
  }

  /** Called when there is room again. */
  onDrain(): void {
    if (!this.#flow.isBlocked) return;
    this.#owner.onBodyBlocked(false);
    this.#flow.onDrain();
  }

  /** Called when the connection needs no more of the body. */
  stop(): void {
    this.#sink = null;
    this.#flow.end();
    if (this.#body.onArrival === this.#onArrival) this.#body.onArrival = null;
  }

  readonly #onArrival = (): void => {
    const { waitingBytes, complete } = this.#body;
    if (complete || waitingBytes >= JOINED_BYTES_MAX) this.#send();
    else if (!this.#isJoining) {
      this.#isJoining = true;
      setImmediate(() => {
        this.#isJoining = false;
        this.#send();
      });
    }
  };

  #send(): void {
    const body = this.#body;
    while (this.#sink !== null && !this.#flow.isBlocked) {
      const part = body.take();
      if (part === null) break;
      const pieces = body.pieces.pieces;
      this.#flow.count(part.length, pieces - this.#piecesPassed);
      this.#piecesPassed = pieces;
      this.#write(this.#sink, part);
    }
    const sink = this.#sink;
    if (sink === null || this.#flow.isBlocked) return;
    if (body.complete && body.waitingBytes === 0) this.#end(sink);
    else if (this.#before === sink.head) this.#writeText(sink, '');
  }

  /** @param part is empty afterwards, so it comes last: only the last buffer of a write is freed */
  #write(sink: Sink, part: Buffer): void {
    const { socket, isChunked } = sink;
    socket.cork();
    this.#writeText(sink, isChunked ? `${part.length.toString(16)}\r\n` : '');
    if (isChunked) this.#before = '\r\n';
    socket.write(part);
    socket.uncork();
    // Usually the kernel has taken everything by now, although the stream announces a drain.
    if (socket.writableLength === 0 || !socket.writableNeedDrain) return;
    this.#flow.awaitDrain();
    this.#owner.onBodyBlocked(true);
  }

  #end(sink: Sink): void {
    this.stop();
    this.#owner.onBodyEnd();
    this.#writeText(sink, sink.isChunked ? '0\r\n\r\n' : '');
    sink.onSent();
  }

  #writeText({ socket, head, onBegin }: Sink, more: string): void {
    if (this.#before === head) onBegin();
    const text = this.#before + more;
    this.#before = '';
    if (text !== '') socket.write(text, 'latin1');
  }
}
