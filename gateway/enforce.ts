/**
 * The life of a request: match -> identify -> spend -> decide -> tell -> forward.
 *
 * The decision comes before the body is read. A denied request costs neither the upstream nor, once its bucket is
 * known to be exhausted, the store.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { decide, type Verdict } from './decision.ts';
import { DenialWriter } from './denial.ts';
import { isClientRoute, limitHeaders } from './headers.ts';
import { type Identified, identify, NOBODY, PeerTable } from './identify.ts';
import { identityHeaders } from './identity/credential.ts';
import { Digester } from './identity/digest.ts';
import { chargeFor } from './limiter/charge.ts';
import type { Limiter, LimitListener, Spent } from './limiter/limiter.ts';
import type { Metrics } from './metrics.ts';
import { createMatcher, type Matcher } from './policy/match.ts';
import type { PolicySet } from './policy/policy.ts';
import { AWAITED_BYTES_MAX, announcedBytes, type Upload, UploadLine, whenArrived } from './proxy/arrival.ts';
import { type ExchangeResponse, Forward } from './proxy/forward.ts';
import type { HeaderFilter } from './proxy/header-filter.ts';
import { checkRequestHead, EMPTY_HEAD } from './proxy/request-head.ts';
import { type RequestOrigin, upstreamHeaders } from './proxy/request-headers.ts';
import { join } from './proxy/upgrade.ts';
import type { Upstream } from './proxy/upstream.ts';

export interface EnforcementOptions {
  readonly clock: Clock;
  /** For what replies say of the date, which has to follow when the machine's clock is set. */
  readonly wallClock: Clock;
  readonly limiter: Limiter;
  readonly upstream: Upstream;
  readonly metrics: Metrics;
  readonly trust: ProxyTrust;
  readonly headerFilter: HeaderFilter;
  /** A trusted proxy sent a chain that cannot be read. */
  readonly onUntrustedChain: (peer: string) => void;
}

/** What follows from one policy file and one salt; replaced as a whole, so a request sees one table only. */
interface Table {
  readonly match: Matcher;
  readonly digester: Digester;
  /** Lower-case names of the headers that carry credentials. */
  readonly identityHeaders: ReadonlySet<string>;
}

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly denials: DenialWriter;
  readonly uploads: UploadLine;
  #table: Table;
  #set: PolicySet;
  readonly peers: PeerTable;

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.denials = new DenialWriter(options.wallClock);
    this.uploads = new UploadLine(options.upstream.timeoutMs);
    this.peers = new PeerTable(options.trust, (peer) => {
      options.metrics.untrustedChains++;
      options.onUntrustedChain(peer);
    });
    this.#set = set;
    this.#table = tableOf(set, new Digester(salt));
  }

  get policies(): PolicySet {
    return this.#set;
  }

  /** Takes another table into use. Counters live in the store and go on; what this process remembered is dropped. */
  use(set: PolicySet): void {
    this.#set = set;
    this.#table = tableOf(set, this.#table.digester);
  }

  /** The replicas agreed on another salt. */
  useSalt(salt: string): void {
    this.#table = { ...this.#table, digester: new Digester(salt) };
  }

  handle(exchange: Exchange): void {
    const { req } = exchange;
    const { clock, metrics, limiter } = this.options;
    const table = this.#table;
    exchange.arrivedAt = clock();

    const match = table.match(req.method ?? 'GET', req.url ?? '');
    if (!match.ok) {
      metrics.count('malformed');
      // The route is unknown: it may be one that browsers call.
      exchange.cors = true;
      exchange.fail('gateway_bad_request', match.reason, true);
      return;
    }
    exchange.target = match.target;
    exchange.cors = isClientRoute(match.path);
    const peer = this.peers.of(req.socket, table.digester);
    exchange.origin = peer.origin;
    const head = checkRequestHead(
      req.rawHeaders,
      req.httpVersion,
      peer.origin.trusted,
      table.identityHeaders,
    );
    if (!head.ok) {
      metrics.count('malformed');
      exchange.fail('gateway_bad_request', head.reason, true);
      return;
    }
    exchange.head = head;
    if (match.cover === null) {
      metrics.count('uncovered');
      exchange.admit();
      return;
    }
    const identified = identify(match.cover, req.rawHeaders, head.forwardedFor, peer, this.peers);
    if (identified === null) {
      metrics.count('malformed');
      exchange.fail('gateway_bad_request', 'the request presents two different API keys; send one', true);
      return;
    }
    const charge = chargeFor(
      match.cover,
      identified.identities,
      () => this.peers.address(peer, head.forwardedFor),
      (credential) => limiter.isProven(credential),
    );
    if (charge === null) {
      metrics.count('uncovered');
      exchange.admit();
      return;
    }
    exchange.identified = identified;
    const exhausted = limiter.knownExhausted(charge);
    if (exhausted !== null) {
      metrics.deniedFromMemory++;
      exchange.deny(exhausted.map(({ policy, resetMs }) => ({ policy, remaining: 0, resetMs })));
      return;
    }
    exchange.askedAt = clock();
    limiter.spend(charge, exchange);
  }
}

function tableOf(set: PolicySet, digester: Digester): Table {
  return { match: createMatcher(set), digester, identityHeaders: identityHeaders(set.identifiers) };
}

/** One request, from its arrival on. */
export class Exchange extends Forward implements LimitListener, Upload {
  readonly #enforcement: Enforcement;
  origin: RequestOrigin = { peer: '', trusted: false };
  head = EMPTY_HEAD;
  arrivedAt: Millis = 0;
  /** When the store was asked. */
  askedAt: Millis = 0;
  #forwardedAt: Millis = 0;
  identified: Identified = NOBODY;

  constructor(req: IncomingMessage, res: ExchangeResponse, upstream: Upstream, enforcement: Enforcement) {
    super(req, res, upstream);
    this.#enforcement = enforcement;
  }

  /** Goes on to the upstream, once its body need not be waited for there. */
  admit(): void {
    this.#decided();
    const { req } = this;
    const bytes = req.complete ? 0 : announcedBytes(req.rawHeaders);
    if (bytes === 0) this.begin();
    else if (bytes <= AWAITED_BYTES_MAX && !this.expectsContinue) whenArrived(req, () => this.begin());
    else this.#enforcement.uploads.enter(this);
  }

  begin(): void {
    const { clock, headerFilter } = this.#enforcement.options;
    this.#forwardedAt = clock();
    this.forward(this.head, upstreamHeaders(this.req.rawHeaders, this.head, this.origin, headerFilter));
  }

  refuse(): void {
    this.fail('gateway_overloaded', 'too many uploads are on their way; try again later', true);
  }

  onSpent(spent: Spent, position: number): void {
    const { metrics, clock } = this.#enforcement.options;
    if (spent.shares === null) metrics.storeTime.observe(clock() - this.askedAt);
    const decision = decide(spent, position);
    switch (decision.kind) {
      case 'allow':
        metrics.count('allowed');
        for (const { policy } of decision.verdicts) metrics.allowed(policy);
        for (const policy of decision.shadowDenials) metrics.shadowDenied(policy);
        this.added = limitHeaders(decision.verdicts);
        this.admit();
        return;
      case 'deny':
        this.deny(decision.violated);
        return;
      default:
        decision satisfies never;
    }
  }

  onStoreUnavailable(): void {
    this.#enforcement.options.metrics.count('unavailable');
    this.#decided();
    this.added = ['Retry-After', '1'];
    this.fail('gateway_store_unavailable', 'limits cannot be checked at the moment; try again in a second');
  }

  /** @param violated the exhausted policies */
  deny(violated: readonly Verdict[]): void {
    const { options, denials } = this.#enforcement;
    options.metrics.count('denied');
    this.#decided();
    for (const { policy } of violated) options.metrics.denied(policy);
    if (this.done) return;
    this.done = true;
    denials.write(this.req, this.res, violated, { cors: this.cors, close: this.closes });
  }

  #decided(): void {
    const { clock, metrics } = this.#enforcement.options;
    metrics.decisionTime.observe(clock() - this.arrivedAt);
  }

  /** What the answer says of the credential that was presented. */
  protected override onReply(status: number): void {
    const { clock, limiter, metrics } = this.#enforcement.options;
    metrics.upstreamTime.observe(clock() - this.#forwardedAt);
    const { provable, credentials } = this.identified;
    if (status >= 200 && status < 300) {
      if (provable !== null && !limiter.isProven(provable)) limiter.prove(provable);
    } else if (status === 401) {
      for (const credential of credentials) if (limiter.isProven(credential)) limiter.withdraw(credential);
    }
  }
}

/** A request that wants to switch protocols. */
export class UpgradeExchange extends Exchange {
  readonly #socket: Duplex;
  readonly #head: Buffer;
  readonly #protocol: string;

  constructor(
    req: IncomingMessage,
    res: ExchangeResponse,
    upstream: Upstream,
    enforcement: Enforcement,
    tunnel: { readonly socket: Duplex; readonly head: Buffer },
  ) {
    super(req, res, upstream, enforcement);
    this.#socket = tunnel.socket;
    this.#head = tunnel.head;
    this.#protocol = req.headers.upgrade ?? 'websocket';
  }

  protected override upgradeTo(): string {
    return this.#protocol;
  }

  override onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    _statusCode: number,
    _headers: unknown,
    upstreamSocket: Duplex,
  ): void {
    this.leaveUpstream();
    if (this.done) {
      upstreamSocket.destroy();
      return;
    }
    this.done = true;
    this.res.detachSocket(this.req.socket);
    join(this.#socket, this.#head, upstreamSocket, controller, this.added);
  }
}
