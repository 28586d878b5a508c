/**
 * The life of a request: match -> identify -> spend -> decide -> tell -> forward.
 *
 * The decision comes before the body is read. A denied request costs neither the upstream nor, once its bucket is
 * known to be exhausted, the store.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { clientAddress, isTrustedPeer, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { decide, type Verdict } from './decision.ts';
import { DenialWriter } from './denial.ts';
import { isClientRoute, limitHeaders } from './headers.ts';
import { presentedCredential } from './identity/credential.ts';
import { chargeFor, Identities, type Identity } from './identity/identity.ts';
import type { Charge, Limiter, Spent, Waiter } from './limiter/limiter.ts';
import type { Metrics } from './metrics.ts';
import { type Cover, createMatcher, type Matcher } from './policy/match.ts';
import type { Identifier, PolicySet } from './policy/policy.ts';
import { AWAITED_BYTES_MAX, announcedBytes, type Upload, UploadLine, whenArrived } from './proxy/arrival.ts';
import { type ExchangeResponse, Forward } from './proxy/forward.ts';
import { forwardedForOf, type RequestOrigin } from './proxy/request-headers.ts';
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
  /** A trusted proxy sent a chain that cannot be read. */
  readonly onUntrustedChain: (peer: string) => void;
}

/** What follows from one policy file and one salt; replaced as a whole, so a request sees one table only. */
interface Table {
  readonly match: Matcher;
  readonly identities: Identities;
}

/** What is known of a connection; worked out at its first request. */
interface Peer {
  readonly origin: RequestOrigin;
  /** Addresses counted on this connection, by identifier; empty where each request names another client. */
  readonly identities: Map<Identifier, Identity>;
  readonly table: Table;
}

const AMBIGUOUS = Symbol('ambiguous');

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly denials: DenialWriter;
  readonly uploads: UploadLine;
  #table: Table;
  #set: PolicySet;
  #salt: string;
  readonly #peers = new WeakMap<Socket, Peer>();

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.denials = new DenialWriter(options.wallClock);
    this.uploads = new UploadLine(options.upstream.timeoutMs);
    this.#set = set;
    this.#salt = salt;
    this.#table = { match: createMatcher(set), identities: new Identities(salt) };
  }

  get policies(): PolicySet {
    return this.#set;
  }

  /** Takes another table into use. Counters live in the store and go on; what this process remembered is dropped. */
  use(set: PolicySet): void {
    this.#set = set;
    this.#table = { match: createMatcher(set), identities: new Identities(this.#salt) };
  }

  /** The replicas agreed on another salt. */
  useSalt(salt: string): void {
    this.#salt = salt;
    this.#table = { match: this.#table.match, identities: new Identities(salt) };
  }

  handle(exchange: Exchange): void {
    const { req } = exchange;
    const { metrics, limiter, clock } = this.options;
    const table = this.#table;

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
    exchange.peer = this.#peer(req.socket, table);

    const charge = match.cover === null ? null : this.#identify(match.cover, exchange, table, clock());
    if (charge === AMBIGUOUS) {
      metrics.count('malformed');
      exchange.fail('gateway_bad_request', 'the request presents two different API keys; send one', true);
      return;
    }
    if (charge === null) {
      metrics.count('uncovered');
      exchange.admit();
      return;
    }
    exchange.charge = charge;
    const remembered = exhaustedOf(charge, clock());
    if (remembered !== null) {
      metrics.deniedFromMemory++;
      exchange.deny(remembered);
      return;
    }
    limiter.spend(charge, exchange);
  }

  #identify(cover: Cover, exchange: Exchange, table: Table, now: Millis): Charge | null | typeof AMBIGUOUS {
    const { req } = exchange;
    const identities: (Identity | null)[] = [];
    let address: Identity | null = null;
    let isCounted = false;
    for (const identifier of cover.identifiers) {
      let identity: Identity | null = null;
      if (identifier.kind === 'address') {
        address = this.#address(identifier, exchange, table);
        identity = address;
      } else {
        const presented = presentedCredential(req.rawHeaders, identifier.sources);
        if (presented.kind === 'ambiguous') return AMBIGUOUS;
        if (presented.kind === 'one') identity = table.identities.of(identifier, presented.value);
      }
      isCounted ||= identity !== null;
      identities.push(identity);
    }
    // No credential, no address counted: nobody to charge.
    if (!isCounted) return null;
    return chargeFor(cover, identities, address ?? this.#address(ANY_ADDRESS, exchange, table), now);
  }

  #address(identifier: Identifier, exchange: Exchange, table: Table): Identity {
    const { trust } = this.options;
    const { origin, identities } = exchange.peer;
    const known = identities.get(identifier);
    if (known !== undefined) return known;
    const ipv6Prefix = identifier.kind === 'address' ? identifier.ipv6Prefix : 64;
    // Behind a trusted proxy one connection carries many clients, so nothing may be remembered for it.
    const chain = origin.trusted ? forwardedForOf(exchange.req.rawHeaders) : '';
    const address = clientAddress(origin.peer, chain, trust, ipv6Prefix);
    if (address === UNTRUSTED) {
      this.options.metrics.untrustedChains++;
      this.options.onUntrustedChain(origin.peer);
    }
    const identity = table.identities.of(identifier, address);
    if (!origin.trusted) identities.set(identifier, identity);
    return identity;
  }

  #peer(socket: Socket, table: Table): Peer {
    const known = this.#peers.get(socket);
    if (known !== undefined && known.table === table) return known;
    const address = socket.remoteAddress ?? '';
    const peer: Peer = {
      // What a dual-stack listener calls ::ffff:192.0.2.1 is 192.0.2.1 to everybody else.
      origin: {
        peer: address.startsWith('::ffff:') ? address.slice(7) : address,
        trusted: isTrustedPeer(address, this.options.trust),
      },
      identities: new Map(),
      table,
    };
    this.#peers.set(socket, peer);
    return peer;
  }
}

/** Who answers for credentials that never worked where no policy of the request counts addresses itself. */
const ANY_ADDRESS: Identifier = { name: 'address', kind: 'address', ipv6Prefix: 64 };

const NO_PEER: Peer = {
  origin: { peer: '', trusted: false },
  identities: new Map(),
  table: { match: () => ({ ok: false, reason: '' }), identities: new Identities('') },
};

/** The policies of a charge that this process knows to be exhausted; null when the store has to be asked. */
function exhaustedOf(charge: Charge, now: Millis): Verdict[] | null {
  let exhausted: Verdict[] | null = null;
  for (const bucket of charge.buckets) {
    // Another replica may know that this credential is proven: only the store can say.
    if (bucket.exhaustedUntil <= now || bucket.onlyUnproven) continue;
    exhausted ??= [];
    exhausted.push({ policy: bucket.policy, remaining: 0, resetMs: bucket.resetsAt - now });
  }
  return exhausted;
}

/** One request, from its arrival on. */
export class Exchange extends Forward implements Waiter, Upload {
  readonly #enforcement: Enforcement;
  peer: Peer = NO_PEER;
  charge: Charge | null = null;

  constructor(req: IncomingMessage, res: ExchangeResponse, upstream: Upstream, enforcement: Enforcement) {
    super(req, res, upstream);
    this.#enforcement = enforcement;
  }

  /** Goes on to the upstream, once its body need not be waited for there. */
  admit(): void {
    const { req } = this;
    const bytes = req.complete ? 0 : announcedBytes(req.rawHeaders);
    if (bytes === 0) this.begin();
    else if (bytes <= AWAITED_BYTES_MAX && !this.expectsContinue) whenArrived(req, () => this.begin());
    else this.#enforcement.uploads.enter(this);
  }

  begin(): void {
    this.forward(this.peer.origin);
  }

  refuse(): void {
    this.fail('gateway_overloaded', 'too many uploads are on their way; try again later', true);
  }

  onSpent(spent: Spent, position: number): void {
    const { metrics } = this.#enforcement.options;
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
    this.added = ['Retry-After', '1'];
    this.fail('gateway_store_unavailable', 'limits cannot be checked at the moment; try again in a second');
  }

  /** @param violated the exhausted policies */
  deny(violated: readonly Verdict[]): void {
    const { options, denials } = this.#enforcement;
    options.metrics.count('denied');
    for (const { policy } of violated) options.metrics.denied(policy);
    if (this.done) return;
    this.done = true;
    denials.write(this.req, this.res, violated, { cors: this.cors, close: this.closes });
  }

  /** A credential has worked once the upstream says anything to it that it does not say to strangers. */
  protected override onReply(status: number): void {
    const proof = this.charge?.proof ?? null;
    if (proof !== null && provesCredential(status)) this.#enforcement.options.limiter.prove(proof);
  }
}

/**
 * GATEWAY.md §2: a key is unproven until it is answered with something other than 401/403. Also no proof is what
 * servers answer without looking at the key at all: an unknown route (404, 405), a limit (429), a fault (5xx). With
 * those, any invented key sent to an invented path would buy itself a budget.
 */
function provesCredential(status: number): boolean {
  return (
    status < 500 && status !== 401 && status !== 403 && status !== 404 && status !== 405 && status !== 429
  );
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
