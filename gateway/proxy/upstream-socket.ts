/**
 * A connection to the upstream that is heard out: what the upstream said before it closed is read although nothing can
 * be written any more. Node destroys a socket, and with it what has arrived, at the first write that fails; an upstream
 * that answers 413 and closes while the body is still coming would not be heard.
 *
 * What is written to it is given away: a large buffer is empty as soon as it is written.
 */
import { type OnReadOpts, Socket } from 'node:net';
import { free, type Garbage, ownMemory } from './free-buffer.ts';

type Written = (error?: Error | null) => void;

export class UpstreamSocket extends Socket {
  #cannotWrite = false;
  #written: Written | null = null;
  /** The memory of what is being written. */
  #memory: ArrayBuffer | null = null;
  readonly #garbage: Garbage;

  constructor(garbage: Garbage, onread?: OnReadOpts) {
    super(onread === undefined ? {} : { onread });
    this.#garbage = garbage;
  }

  override _write(chunk: unknown, encoding: BufferEncoding, written: Written): void {
    if (this.#cannotWrite) {
      written();
      return;
    }
    this.#written = written;
    this.#memory = ownMemory(chunk);
    super._write(chunk, encoding, this.#onWritten);
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], written: Written): void {
    if (this.#cannotWrite) {
      written();
      return;
    }
    this.#written = written;
    // A piece of a body is written last, behind the head or the size of a chunk.
    this.#memory = ownMemory(chunks.at(-1)?.chunk);
    super._writev?.(chunks, this.#onWritten);
  }

  /** A stream writes one thing at a time, so one callback serves all. */
  readonly #onWritten: Written = (error) => {
    const written = this.#written;
    this.#written = null;
    const memory = this.#memory;
    this.#memory = null;
    // After an error the kernel may not have taken it yet.
    if (memory !== null && error == null) this.#garbage.freed(free(memory));
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    // The reading side ends by itself, after what has arrived.
    if (code === 'EPIPE' || code === 'ECONNRESET') {
      this.#cannotWrite = true;
      written?.();
    } else written?.(error);
  };
}
