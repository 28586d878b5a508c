/**
 * Ends replies that make no progress, so that clients who read nothing keep no reply in memory. Progress is a byte that
 * the kernel takes from us. The timeouts of Node's sockets do not measure that: bytes that the client sends restart them,
 * and the first one passes without effect while a write is under way.
 */
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Millis } from '#shared/clock.ts';

/** Number of looks at a reply in its time. A stalled reply ends at most a twelfth of the time too late. */
const LOOKS = 12;

interface Progress {
  readonly socket: Socket;
  takenBytes: number;
  /** Number of looks since the last progress. */
  quietLooks: number;
}

/** @param timeoutMs time without progress after which a reply ends with its connection */
export function endStalledReplies(app: FastifyInstance, timeoutMs: Millis): void {
  const running = new Map<FastifyReply, Progress>();
  app.addHook('onSend', (request, reply, payload, done) => {
    const { socket } = request.raw;
    // Requests of `inject` have no real socket.
    if (socket instanceof Socket) {
      running.set(reply, { socket, takenBytes: takenBytes(socket), quietLooks: 0 });
    }
    done(null, payload);
  });
  app.addHook('onResponse', (_request, reply, done) => {
    running.delete(reply);
    done();
  });
  const timer = setInterval(() => {
    for (const [reply, progress] of running) {
      // Fastify does not call `onResponse` for replies of a connection that ends early.
      if (progress.socket.destroyed) running.delete(reply);
      else look(progress);
    }
  }, timeoutMs / LOOKS).unref();
  app.addHook('onClose', (_app, done) => {
    clearInterval(timer);
    done();
  });
}

function look(progress: Progress): void {
  const taken = takenBytes(progress.socket);
  if (taken !== progress.takenBytes) {
    progress.takenBytes = taken;
    progress.quietLooks = 0;
    return;
  }
  progress.quietLooks += 1;
  if (progress.quietLooks >= LOOKS) progress.socket.destroy();
}

/**
 * The number of bytes that the kernel has taken. Only the handle counts within a large write. It has no public name, but
 * the timeouts of Node read the same fields.
 */
function takenBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (!(handle instanceof Object)) return 0;
  return Number(Reflect.get(handle, 'bytesWritten')) - Number(Reflect.get(handle, 'writeQueueSize'));
}
