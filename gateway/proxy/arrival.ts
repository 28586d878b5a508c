/**
 * Request bodies that are still on their way. A connection to the upstream is scarce, and a client that sends slowly, by
 * intent or not, would hold one for as long as it likes. So a small body is awaited before one is taken; those that
 * must stream take at most a part of them; and a sender that has fallen silent is cut.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Millis } from '#shared/clock.ts';
import type { ExchangeResponse } from './forward.ts';

/** Bodies up to this size are awaited: well below what node:http holds for a reader that has not come yet. */
export const AWAITED_BYTES_MAX = 16_384;
/** Of the upstream's 256 connections the others stay for requests that are there. */
const UPLOADS_MAX = 128;
const CHECK_MS: Millis = 5000;
/** So many checks without the least progress worth the name, 30 seconds, are silence. */
const SILENT_CHECKS = 6;
/** In that time, about 500 bytes a second: the slowest of mobile networks is faster. */
const PROGRESS_BYTES = 16_384;

/** @returns the announced length of the body; Infinity when it is chunked, 0 when there is none */
export function announcedBytes(rawHeaders: readonly string[]): number {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === 14 && name.toLowerCase() === 'content-length') return Number(rawHeaders[i + 1]);
    if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') return Number.POSITIVE_INFINITY;
  }
  return 0;
}

/** Calls back once the whole body is there, unread. Never when the client leaves before. */
export function whenArrived(req: IncomingMessage, then: () => void): void {
  const look = (): void => {
    if (!req.complete) return;
    req.off('readable', look);
    then();
  };
  req.on('readable', look);
}

/** A body that is streamed to the upstream while it comes in. */
export interface Upload {
  begin(): void;
  /** Its turn did not come in time. */
  refuse(): void;
}

/** Who waits here is read no further than what has arrived. */
export class UploadLine {
  readonly #waitMs: Millis;
  readonly #max: number;
  readonly #running = new Set<Upload>();
  readonly #waiting = new Map<Upload, NodeJS.Timeout>();

  constructor(waitMs: Millis, max = UPLOADS_MAX) {
    this.#waitMs = waitMs;
    this.#max = max;
  }

  enter(upload: Upload): void {
    if (this.#running.size < this.#max) {
      this.#begin(upload);
      return;
    }
    const timer = setTimeout(() => {
      if (this.#waiting.delete(upload)) upload.refuse();
    }, this.#waitMs);
    this.#waiting.set(upload, timer);
  }

  /** Over, or given up. Does nothing for one that is not here. */
  leave(upload: Upload): void {
    clearTimeout(this.#waiting.get(upload));
    this.#waiting.delete(upload);
    if (!this.#running.delete(upload)) return;
    for (const next of this.#waiting.keys()) {
      clearTimeout(this.#waiting.get(next));
      this.#waiting.delete(next);
      this.#begin(next);
      return;
    }
  }

  #begin(upload: Upload): void {
    this.#running.add(upload);
    upload.begin();
  }
}

interface Progress {
  readonly req: IncomingMessage;
  readonly bytesRead: number;
  readonly checks: number;
}

/** Looks at all connections every few seconds, so that no request needs a timer of its own. */
export class SilenceWatch {
  readonly #timer: NodeJS.Timeout;
  #seen = new Map<Socket, Progress>();

  /** @param cut ends the connection; called for each whose body has stopped coming although we would read it */
  constructor(
    sockets: ReadonlySet<Socket>,
    pending: (socket: Socket) => ExchangeResponse | null,
    cut: (socket: Socket) => void,
    checkMs = CHECK_MS,
  ) {
    this.#timer = setInterval(() => {
      const before = this.#seen;
      this.#seen = new Map();
      for (const socket of sockets) {
        const res = pending(socket);
        // Once a reply has begun the two may well take turns; its own silence is the upstream's matter.
        if (res === null || res.headersSent || res.req.complete) continue;
        const { req } = res;
        // Full: it is we who do not read.
        if (req.readableLength >= req.readableHighWaterMark) continue;
        const last = before.get(socket);
        const { bytesRead } = socket;
        if (last?.req !== req || bytesRead - last.bytesRead >= PROGRESS_BYTES) {
          this.#seen.set(socket, { req, bytesRead, checks: 0 });
        } else if (last.checks + 1 >= SILENT_CHECKS) cut(socket);
        else this.#seen.set(socket, { ...last, checks: last.checks + 1 });
      }
    }, checkMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
