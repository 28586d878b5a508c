/** The public listener, based on node:http. On shutdown it waits for the requests in flight. */
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Clients } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { HEADER_BYTES } from '#gateway/http/header-size.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { closeUnlessUsed, discardBody } from '#gateway/http/lingering-close.ts';
import type { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import { ConnectionWatch } from '#gateway/listen/connection/connection-watch.ts';
import { Floods } from '#gateway/listen/connection/floods.ts';
import { areScarce, keepAliveOf, type Times } from '#gateway/listen/connection/keep-alive.ts';
import { Pipelining } from '#gateway/listen/connection/pipelining.ts';
import {
  METHOD_NOT_ALLOWED,
  SocketReplies,
  unusualReply,
} from '#gateway/listen/connection/socket-replies.ts';
import { PlainConnection, type PlainConnectionOptions } from '#gateway/listen/plain/plain-connection.ts';
import { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { EntryLog } from '#gateway/observe/log-line.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { counter, type Sample } from '#gateway/part/sample.ts';
import type { RequestOptions } from '#gateway/proxy/forwarded-request.ts';
import { mayUpgrade, responseFor } from '#gateway/proxy/upgrade.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import type { Decisions } from '#gateway/refusals/decisions.ts';
import { outcomeOf, REASONS } from '#gateway/refusals/reasons.ts';
import { DenialWriter } from '#gateway/reply/denial.ts';
import { sendOwn } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import type { Events } from '#gateway/request/events.ts';
import { Refusals } from '#gateway/request/refuse.ts';
import { type Arrival, type ForwardingParts, GatewayRequest } from '#gateway/request/request.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { Entrance, type EntranceSlots } from './entrance.ts';
import { type HttpServer, newHttpServer } from './http-server.ts';
import { Listener, type ListenOptions } from './listener.ts';

/** Time after which TCP asks a silent peer whether it is still there. */
const PROBE_MS: Millis = 65_000;
/** While the server drains, a request may still begin on an idle connection for this time. */
const IDLE_GRACE_MS: Millis = 500;
const DRAIN_CHECK_MS: Millis = 50;
/** Far more event-loop ticks than the close of a connection takes. */
const CLOSE_TURNS_MAX = 100;

/** Optional parts add these objects to a server. */
export interface ServerSlots extends EntranceSlots {
  /** null if the access log is off */
  readonly accessLog: EntryLog | null;
}

export interface PublicServerOptions extends ServerSlots {
  readonly enforcement: Enforcement;
  /** Hear of each request. */
  readonly events: Events;
  readonly metrics: Metrics;
  /** Addresses of refused clients, if operators may see them. */
  readonly addresses: RefusedAddresses | null;
  readonly rankOf: ForwardingParts['rankOf'];
  readonly upstream: Upstream;
  readonly clients: Clients;
  readonly decisions: Decisions;
  readonly clock: Clock;
  /** Whether the gateway's own parser reads plain requests instead of node:http. Default: false. */
  readonly hasOwnParser?: boolean;
  /** Maximum size of a header section. Default: HEADER_BYTES. */
  readonly headerBytesMax?: number;
  /** How long idle connections are kept. Unset: 620 s for trusted proxies, 65 s for others. */
  readonly keepAliveMs?: Millis | null;
  /** Protocols in lower case that a client may switch to. Default: WebSocket. */
  readonly upgrades?: ReadonlySet<string>;
  /** Time between two checks for slow bodies and unread replies. */
  readonly checkMs?: Millis;
  /** Time after a flood in which new connections of the client are refused. */
  readonly penaltyMs?: Millis;
  /** Set for the decision listener. Unset: requests are limited and forwarded. */
  readonly decisionServer?: DecisionServer;
}

/** The running core, for parts that have listeners of their own. */
export interface ListenerCore {
  readonly server: PublicServerOptions;
  readonly reusePort: boolean;
}

/** Answers other proxies that ask whether a request may pass. */
export interface DecisionServer {
  readonly keepAliveMs: Millis;
  readonly headerBytesMax: number;
  begin(arrival: Arrival, parts: ForwardingParts): void;
}

/** The two readers of connections. Our parser begins with each connection, and may hand it over to node:http. */
interface Readers {
  readonly plain: PlainConnectionOptions;
  readonly http: HttpServer;
}

export class PublicServer {
  readonly #watch: ConnectionWatch;
  /** Unlike node:http's server, it can stop accepting without closing idle connections. */
  readonly #listener: Listener;
  /** Those for clients and for trusted proxies, which differ in their times. */
  readonly #readers: Readonly<Record<'clients' | 'proxies', Readers>>;
  readonly #headerBytesMax: number;
  readonly #options: PublicServerOptions;
  readonly #parts: ForwardingParts;
  readonly #connections = new Map<Socket, ClientConnection>();
  readonly #entrance: Entrance;
  readonly #pipelining: Pipelining;
  readonly #floods: Floods;

  constructor(options: PublicServerOptions) {
    const { enforcement, events, rankOf, upstream, clients, decisionServer } = options;
    this.#options = options;
    const { clients: ofClients, proxies: ofProxies } = keepAliveOf(
      decisionServer?.keepAliveMs ?? options.keepAliveMs ?? null,
      enforcement.options.trust,
    );
    this.#headerBytesMax = decisionServer?.headerBytesMax ?? options.headerBytesMax ?? HEADER_BYTES;
    const denials = new DenialWriter(enforcement.options.wallClock);
    const refusals = new Refusals(options);
    this.#parts = { enforcement, events, rankOf, upstream, clients, refusals, denials };
    const socketReplies = new SocketReplies({
      connections: this.#connections,
      accessLog: options.accessLog,
      metrics: options.metrics,
      cors: () => enforcement.table.cors,
      wallClock: enforcement.options.wallClock,
      headerBytesMax: this.#headerBytesMax,
    });
    this.#floods = new Floods({
      clients,
      connections: this.#connections,
      refuse: (socket, reply) => socketReplies.refuse(socket, reply),
      penaltyMs: options.penaltyMs,
    });
    this.#pipelining = new Pipelining(upstream.bounds.pipelined, this.#floods);
    this.#watch = new ConnectionWatch({
      connections: this.#connections,
      clients: options.clients,
      upstream: options.upstream,
      clock: options.clock,
      refuseSilent: (connection) => socketReplies.refuse(connection.socket, SILENT),
      checkMs: options.checkMs,
    });
    this.#entrance = new Entrance({
      ...options,
      refusals,
      connections: options.upstream.bounds.connections,
      floods: this.#floods,
      onOpen: (connection) => this.#open(connection),
    });
    this.#listener = new Listener((socket) => this.#entrance.accept(socket), PROBE_MS);
    this.#readers = {
      clients: this.#readersFor(ofClients, socketReplies),
      proxies: this.#readersFor(ofProxies, socketReplies),
    };
  }

  #readersFor(times: Times, socketReplies: SocketReplies): Readers {
    const { clock, enforcement, hasOwnParser, handshakes, decisionServer, upgrades } = this.#options;
    const http = newHttpServer({
      maxHeaderSize: this.#headerBytesMax,
      keepAliveTimeout: times.idleMs,
      shouldUpgradeCallback: (req) =>
        decisionServer === undefined && mayUpgrade(req, this.#connections.get(req.socket), upgrades),
    });
    this.#listenTo(http, socketReplies);
    const plain: PlainConnectionOptions = {
      ...times,
      readsRequests: hasOwnParser === true && handshakes === null && decisionServer === undefined,
      clock,
      date: new DateField(enforcement.options.wallClock),
      pieces: this.#floods,
      pipelining: this.#pipelining,
      headerBytesMax: this.#headerBytesMax,
      keepAlive: `timeout=${Math.floor(times.idleMs / 1000)}`,
      onRequest: (connection, req, res) => this.#begin(connection, req, res, PLAIN),
      onClientError: (error, socket) => socketReplies.onClientError(error, socket),
      onHandOver: ({ socket }) => http.emit('connection', socket),
    };
    return { plain, http };
  }

  #listenTo(http: HttpServer, socketReplies: SocketReplies): void {
    http.on('request', (req, res) => this.#handle(req, res, PLAIN));
    http.on('checkContinue', (req, res) => this.#handle(req, res, { continuation: res, upgrade: null }));
    http.on('checkExpectation', (req, res) => this.#handle(req, res, PLAIN));
    http.on('upgrade', (req, socket, head) => {
      const res = responseFor(req, socket);
      const release = (): void => res.detachSocket(req.socket);
      const upgrade = { protocol: req.headers.upgrade ?? '', socket, head, release };
      this.#handle(req, res, { continuation: null, upgrade });
    });
    http.on('connect', (_req, socket) => {
      socket.on('error', () => socket.destroy());
      socketReplies.refuse(socket, METHOD_NOT_ALLOWED);
    });
    // Emitted when the keep-alive time is over. Without a listener, node:http would close the connection at once.
    http.on('timeout', closeUnlessUsed);
    http.on('clientError', (error, socket) => socketReplies.onClientError(error, socket));
  }

  #open(connection: ClientConnection): void {
    const { socket } = connection;
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      this.#watch.forget(connection);
      this.#pipelining.forget(connection);
    });
    const readers = this.#readers[connection.origin.trusted ? 'proxies' : 'clients'];
    new PlainConnection(connection, readers.plain);
  }

  #handle(req: IncomingRequest, res: OutgoingResponse, options: RequestOptions): void {
    const connection = this.#connections.get(req.socket);
    // node:http still emits requests that it parsed before the connection was cut, and those behind the last reply while
    // the connection lingers.
    if (connection === undefined || !req.socket.writable) return;
    req.listener = this.#floods;
    // node:http gives a pipelined response its socket only when the earlier replies are sent.
    if (res.socket === null)
      this.#pipelining.holdBack(connection, req, res, () => this.#handle(req, res, options));
    else this.#begin(connection, req, res, options);
  }

  #begin(
    connection: ClientConnection,
    req: ClientRequest,
    res: ClientResponse,
    options: RequestOptions,
  ): void {
    const { enforcement, metrics, upstream, decisionServer } = this.#options;
    connection.begin(res);
    if (areScarce(upstream.bounds.connections)) res.shouldKeepAlive = false;
    const entry = this.#entryFor(req, res);
    const unusual = unusualReply(req);
    const arrival = { connection, req, res, entry };
    if (unusual !== null) {
      metrics.requests.of(outcomeOf(REASONS.malformed)).value++;
      if (entry !== null) entry.decision = REASONS.malformed.logged;
      sendOwn(res, { ...unusual, cors: enforcement.table.cors.unread(req.rawHeaders) });
    } else if (req.method === 'OPTIONS' && req.url === '*' && decisionServer === undefined) {
      // `OPTIONS *` asks about the server, not about a resource (RFC 9110 9.3.7).
      metrics.requests.of('uncovered').value++;
      if (entry !== null) entry.decision = 'uncovered';
      res.writeHead(204, upstream.draining ? ['Connection', 'close'] : []);
      res.end();
      discardBody(req.body);
    } else if (decisionServer === undefined) new GatewayRequest(arrival, options, this.#parts).story.begin();
    else decisionServer.begin(arrival, this.#parts);
  }

  #entryFor(req: ClientRequest, res: ClientResponse): AccessEntry | null {
    const { accessLog, clock, enforcement } = this.#options;
    if (accessLog?.takes() !== true) return null;
    const entry = new AccessEntry(accessLog, req, res, clock, enforcement.options.wallClock);
    res.entry = entry;
    return entry;
  }

  samples(): Sample[] {
    const cut = (value: number, reason: string): Sample =>
      counter('floodgate_connections_cut_total', 'Client connections that the gateway cut.', value, {
        reason,
      });
    return [
      cut(this.#watch.unreadCut, 'unread reply'),
      cut(this.#watch.silentCut, 'slow body'),
      cut(this.#floods.cut, 'small pieces'),
    ];
  }

  /** @returns the port; the kernel chooses it if the option is 0 */
  listen(options: ListenOptions): Promise<number> {
    return this.#listener.listen(options);
  }

  /**
   * Stops accepting connections, and answers requests on open connections with `Connection: close`. Resolves when all
   * requests are answered. After the deadline, the remaining connections are cut.
   */
  async drain(deadlineMs: Millis): Promise<void> {
    this.#options.upstream.draining = true;
    await this.#listener.emptyQueue();
    const closed = this.#listener.close();
    const closeIdle = (): void => {
      let isReplyUnread = false;
      for (const connection of this.#connections.values()) {
        connection.reader?.closeIdle();
        isReplyUnread ||= connection.pending !== null && connection.pending.exchange?.isClosed !== false;
      }
      // node:http would also close connections whose complete reply the client has not read yet.
      if (!isReplyUnread) for (const { http } of Object.values(this.#readers)) http.closeIdleConnections();
      this.#entrance.cut();
    };
    // Let node:http first read the requests that have already arrived in the kernel.
    const afterRead = (): void => void setImmediate(closeIdle);
    const idle = setTimeout(afterRead, IDLE_GRACE_MS);
    const sweep = setInterval(afterRead, IDLE_GRACE_MS + DRAIN_CHECK_MS);
    const deadline = setTimeout(() => {
      this.#entrance.cut();
      for (const socket of this.#connections.keys()) socket.destroy();
    }, deadlineMs);
    await closed;
    // A listener counts a connection as closed shortly before its socket closes, and only then its request is logged.
    for (let turns = 0; this.#connections.size > 0 && turns < CLOSE_TURNS_MAX; turns++) await nextTurn();
    this.#watch.stop();
    for (const { http } of Object.values(this.#readers)) http.close();
    clearTimeout(idle);
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}

const PLAIN: RequestOptions = { continuation: null, upgrade: null };

const SILENT = unreadReply(REASONS.slowBody);
