/** Envoy's rate limit service over gRPC, without TLS. Loaded only if it is switched on. */
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { originOf } from '#gateway/http/request-origin.ts';
import { Listener, type ListenOptions } from '#gateway/listen/listener.ts';
import {
  AccessEntry,
  type LoggedRequest,
  type LoggedResponse,
} from '#gateway/observe/access-log/access-entry.ts';
import type { AccessLog } from '#gateway/observe/access-log/access-log.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import type { LimitedParts, Sent } from '#gateway/request/limited-request.ts';
import type { Millis } from '#shared/clock.ts';
import { methodProblem } from './authorization-request.ts';
import { type CheckedOptions, UNTRUSTED } from './checked-request.ts';
import { describedBy, type RateLimitRequest } from './descriptor.ts';
import { RateLimitCall, type RateLimitResponse } from './rate-limit-call.ts';

const PROTO = fileURLToPath(new URL('./rate-limit.proto', import.meta.url));
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** Same limit as for the header section of an authorization request over HTTP. */
const MESSAGE_BYTES_MAX = 65_536;
const STREAMS_MAX = 1024;

interface RateLimitServerOptions extends CheckedOptions {
  readonly parts: LimitedParts;
  readonly upstream: Upstream;
  readonly accessLog: AccessLog | null;
}

type Call = ServerUnaryCall<RateLimitRequest, RateLimitResponse>;

export class RateLimitServer {
  readonly #options: RateLimitServerOptions;
  readonly #listener: Listener;
  readonly #sessions: ConnectionInjector;

  constructor(options: RateLimitServerOptions) {
    this.#options = options;
    const server = new Server({
      'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
      'grpc.max_concurrent_streams': STREAMS_MAX,
      'grpc.enable_channelz': 0,
    });
    server.addService(serviceDefinition(), {
      shouldRateLimit: (call: Call, reply: sendUnaryData<RateLimitResponse>) =>
        this.#decide(call, (response) => reply(null, response)),
    });
    this.#sessions = server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = new Listener((socket) => this.#accept(socket));
  }

  async listen(options: ListenOptions): Promise<void> {
    await this.#listener.listen(options);
  }

  /** Stops accepting and resolves when all calls are answered. Calls that remain after the deadline are cut. */
  async drain(deadlineMs: Millis): Promise<void> {
    await this.#listener.emptyQueue();
    const closed = this.#listener.close();
    this.#sessions.drain(deadlineMs);
    await closed;
    this.#sessions.destroy();
  }

  #accept(socket: Socket): void {
    const { parts, upstream, onBadRequest } = this.#options;
    if (!originOf(socket, parts.enforcement.options.trust).trusted) {
      onBadRequest(UNTRUSTED);
      socket.destroy();
      return;
    }
    const bound = upstream.bounds.connections;
    const refusal = bound.take(null);
    if (refusal !== null) {
      bound.refused(refusal);
      socket.destroy();
      return;
    }
    socket.once('close', () => bound.give(null));
    this.#sessions.injectConnection(socket);
  }

  #decide(call: Call, reply: (response: RateLimitResponse) => void): void {
    const { parts, isCredentialProven, onBadRequest } = this.#options;
    const described = describedBy(call.request);
    const socket = { remoteAddress: addressOf(call.getPeer()) };
    const { method = '', target = '', rawHeaders = [] } = described.ok ? described : {};
    // HTTP/1.0, because it needs no Host field.
    const req: Sent = { method, url: target, rawHeaders, httpVersion: '1.0' };
    const connection = { origin: originOf(socket, parts.enforcement.options.trust) };
    const asked = { req, connection, isVouchedFor: isCredentialProven };
    const request = new RateLimitCall(parts, asked, reply, this.#entryFor(req));
    const problem = described.ok ? methodProblem(method) : described.reason;
    if (!described.ok) onBadRequest(described.reason);
    if (problem === null) request.run();
    else parts.refusals.malformed(request, problem);
  }

  #entryFor({ method, url }: Sent): AccessEntry | null {
    const { accessLog, parts } = this.#options;
    if (accessLog === null || !accessLog.takes()) return null;
    const { clock, wallClock } = parts.enforcement.options;
    return new AccessEntry(accessLog, { ...UNMEASURED, method, url }, ANSWERED, clock, wallClock);
  }
}

/** For calls no byte counts are logged, and a log entry ends with the answer. */
const UNMEASURED: LoggedRequest = {
  headers: {},
  socket: { bytesWritten: 0, bytesRead: 0, destroyed: false, once: () => undefined, off: () => undefined },
};
const ANSWERED: LoggedResponse = {
  headersSent: true,
  statusCode: 200,
  writableFinished: true,
  once: () => undefined,
};

function serviceDefinition(): ServiceDefinition {
  const definition = loadSync(PROTO, { longs: Number, enums: String, defaults: true });
  return definition[SERVICE] as ServiceDefinition;
}

/** @param peer `ADDRESS:PORT` */
function addressOf(peer: string): string {
  return peer.slice(0, Math.max(0, peer.lastIndexOf(':')));
}
