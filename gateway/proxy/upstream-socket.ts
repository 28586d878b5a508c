/**
 * A socket to the upstream that can still be read after a failed write. Node destroys a socket at the first failed
 * write, together with received data. So the reply of an upstream that sends 413 and closes during an upload would be
 * lost.
 *
 * Written buffers are freed at once: a large one is empty after the write.
 */
import { type OnReadOpts, Socket } from 'node:net';
import { free, type Garbage, ownMemory } from './free-buffer.ts';

type Written = (error?: Error | null) => void;

export class UpstreamSocket extends Socket {
  #cannotWrite = false;
  #written: Written | null = null;
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
    // The piece of a body comes last, after the head or the size of a chunk.
    this.#memory = ownMemory(chunks.at(-1)?.chunk);
    super._writev?.(chunks, this.#onWritten);
  }

  /** A stream has at most one write in progress, so one callback is enough. */
  readonly #onWritten: Written = (error) => {
    const written = this.#written;
    this.#written = null;
    const memory = this.#memory;
    this.#memory = null;
    // Do not free the buffer after an error, because the kernel may still be using it.
    if (memory !== null && error == null) this.#garbage.freed(free(memory));
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    // Keep reading. The readable side ends after the received data.
    if (code === 'EPIPE' || code === 'ECONNRESET') {
      this.#cannotWrite = true;
      written?.();
    } else written?.(error);
  };
}
