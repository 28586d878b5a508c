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
import type { Upstream } from '#gateway/proxy/upstream.ts';
import type { Millis } from '#shared/clock.ts';
import { UNTRUSTED } from './authorization-request.ts';
import { type Answer, type DescribedOptions, decideDescribed } from './described-request.ts';
import { describedBy, type RateLimitRequest } from './descriptor.ts';

const PROTO = fileURLToPath(new URL('./rate-limit.proto', import.meta.url));
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** Maximum size of a message, the same as for an authorization request over HTTP. */
const MESSAGE_BYTES_MAX = 65_536;
const STREAMS_MAX = 1024;

interface RateLimitServerOptions extends DescribedOptions {
  readonly upstream: Upstream;
}

interface Header {
  readonly key: string;
  readonly value: string;
}

export interface RateLimitResponse {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  readonly statuses: readonly { readonly code: 'OK' | 'OVER_LIMIT' }[];
  readonly responseHeadersToAdd: readonly Header[];
  readonly requestHeadersToAdd: readonly Header[];
  readonly rawBody: Uint8Array;
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
    const { table, options } = this.#options.parts.enforcement;
    const origin = originOf({ remoteAddress: addressOf(call.getPeer()) }, options.trust);
    const described = describedBy(call.request, table.usesHosts);
    decideDescribed(described, origin, this.#options, (answer) => reply(responseOf(answer)));
  }
}

function responseOf({ status, headers, requestHeaders, body }: Answer): RateLimitResponse {
  const code = status === 200 ? 'OK' : 'OVER_LIMIT';
  return {
    overallCode: code,
    statuses: [{ code }],
    responseHeadersToAdd: pairsOf(headers),
    requestHeadersToAdd: pairsOf(requestHeaders),
    rawBody: Buffer.from(body, 'latin1'),
  };
}

/** @param fields alternating names and values */
function pairsOf(fields: readonly string[]): Header[] {
  const pairs: Header[] = [];
  for (let i = 0; i < fields.length; i += 2) pairs.push({ key: fields[i] ?? '', value: fields[i + 1] ?? '' });
  return pairs;
}

function serviceDefinition(): ServiceDefinition {
  const definition = loadSync(PROTO, { longs: Number, enums: String, defaults: true });
  return definition[SERVICE] as ServiceDefinition;
}

/** @param peer `ADDRESS:PORT` */
function addressOf(peer: string): string {
  return peer.slice(0, Math.max(0, peer.lastIndexOf(':')));
}
