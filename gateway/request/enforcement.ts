/** Which policies cover a request, who is charged for it, and what its answer proves. */

import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import { type CheckedHead, checkRequestHead, type RequestHead } from '#gateway/http/request-head.ts';
import { type RequestOrigin, upstreamHeaders } from '#gateway/http/request-headers.ts';
import { carriersOf, identityHeaders, presentedCredential } from '#gateway/identity/credential.ts';
import { Digester, type Identity } from '#gateway/identity/digest.ts';
import type { CredentialSource } from '#gateway/identity/identifier.ts';
import { VerifiedTokens } from '#gateway/identity/verified-tokens.ts';
import { chargeFor } from '#gateway/limiter/charge.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { Limiter, LimitListener } from '#gateway/limiter/limiter.ts';
import { unitsOf } from '#gateway/limiter/units.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { Bans } from '#gateway/operate/control/bans.ts';
import { entryFor, type ListEntry } from '#gateway/policy/lists.ts';
import { type Cover, createMatcher, type Matcher } from '#gateway/policy/match.ts';
import type { OverrideFacts } from '#gateway/policy/overrides.ts';
import type { PolicySet } from '#gateway/policy/policy.ts';
import { DenialWriter } from '#gateway/reply/denial.ts';
import { clientAddress, clientBytes, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import {
  allIdentitiesOf,
  type ChargedTo,
  Identified,
  identify,
  identityOf,
  type Peer,
  type PeerSocket,
  PeerTable,
} from './identify.ts';
import type { ProbeView } from './probe.ts';

export interface EnforcementOptions {
  readonly clock: Clock;
  /** For what replies say of the date, and for when tokens end: that has to follow when the machine's clock is set. */
  readonly wallClock: Clock;
  readonly limiter: Limiter;
  readonly bans: Bans;
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
  readonly tokens: VerifiedTokens;
  /** Lower-case names of the headers that carry credentials. */
  readonly identityHeaders: ReadonlySet<string>;
  /** Where trusted proxies name plans; null: nowhere. */
  readonly planSources: readonly CredentialSource[] | null;
  readonly planNames: ReadonlySet<string> | null;
  readonly carriers: readonly CredentialSource[];
}

/** Of a request; node:http's requests are such. */
export interface HeaderSection {
  readonly httpVersion: string;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
}

export interface RequestSource {
  readonly method?: string | undefined;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly socket: PeerSocket;
  /** The client's plan, where it is known without a header: a rehearsal's. */
  readonly plan?: string | undefined;
}

/** Who is banned, and until when. */
export interface StandingBan {
  readonly identity: Identity;
  readonly until: Millis;
}

/** The identities that a request presents. */
export interface PresentedIdentities {
  readonly certain: readonly Identity[];
  /** All values of identifiers that have several: nobody knows which one the application takes. */
  readonly doubtful: readonly Identity[];
}

const NOBODY: PresentedIdentities = { certain: [], doubtful: [] };

/** A request, as far as it matters who is charged for it. */
export interface ChargedRequest extends LimitListener {
  /** Answers it without asking the store. @param violated the policies known to be exhausted */
  denyFromMemory(violated: readonly Violation[]): void;
}

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly denials: DenialWriter;
  #table: Table;
  #set: PolicySet;
  readonly peers: PeerTable;

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.denials = new DenialWriter(options.wallClock);
    this.peers = new PeerTable(options.trust, (peer) => {
      options.metrics.untrustedChains++;
      options.onUntrustedChain(peer);
    });
    this.#set = set;
    this.#table = tableOf(set, new Digester(salt), options.wallClock);
  }

  get policies(): PolicySet {
    return this.#set;
  }

  /** Takes another table into use. Counters are known by name, and go on. */
  use(set: PolicySet): void {
    this.#set = set;
    this.#table = tableOf(set, this.#table.digester, this.options.wallClock);
  }

  /** The replicas agreed on another salt. */
  useSalt(salt: string): void {
    const digester = new Digester(salt);
    const tokens = new VerifiedTokens(digester, this.options.wallClock);
    this.#table = { ...this.#table, digester, tokens };
  }

  get metrics(): Metrics {
    return this.options.metrics;
  }

  /** What is malformed is refused before anything is charged for it. */
  checkHead({ rawHeaders, httpVersion }: HeaderSection, origin: RequestOrigin): RequestHead {
    return checkRequestHead(rawHeaders, httpVersion, origin.trusted, this.#table.identityHeaders);
  }

  /** What is known of a connection. */
  peerOf(socket: PeerSocket): Peer {
    return this.peers.of(socket, this.#table);
  }

  match(method: string, target: string): ReturnType<Matcher> {
    return this.#table.match(method, target);
  }

  /**
   * @param target as matched
   * @param isVouchedFor its credentials count as proven
   * @returns null when nobody is charged; why the request is refused when it presents two values where one is counted
   */
  chargeOf(
    cover: Cover,
    source: RequestSource,
    target: string,
    head: CheckedHead,
    isVouchedFor = false,
  ): ChargedTo | null | string {
    const { limiter } = this.options;
    const peer = this.peerOf(source.socket);
    const known = peer.charges.get(cover);
    if (known !== undefined) return known;
    const identified = identify(cover, source, target, head.forwardedFor, peer, this.peers);
    if (typeof identified === 'string') return identified;
    const facts = cover.hasOverrides ? this.#factsOf(source, head, peer.origin) : null;
    if (typeof facts === 'string') return facts;
    const charge = chargeFor(
      cover,
      identified,
      () => this.peers.address(peer, head.forwardedFor),
      (credential) => isVouchedFor || limiter.isProven(credential),
      facts,
      cover.isPlain ? undefined : (counted, capacity) => unitsOf(counted, capacity, source.rawHeaders, head),
    );
    if (charge === null) return null;
    const charged = { charge, identified, hasOutcomes: cover.hasOutcomes, plan: facts?.plan ?? null };
    // The next request of this connection says nothing else.
    if (cover.isByAddress && cover.hasFixedCosts && !peer.origin.trusted) peer.charges.set(cover, charged);
    return charged;
  }

  /**
   * @returns the longest ban of this client, or of a credential that it presents; null where nobody is banned; why the
   * request is refused
   */
  banOf(source: RequestSource, target: string, head: CheckedHead): StandingBan | null | string {
    const { bans, clock } = this.options;
    if (bans.size === 0) return null;
    const now = clock();
    let longest: StandingBan | null = null;
    const presented = this.identitiesOf(source, target, head);
    if (typeof presented === 'string') return presented;
    for (const identity of [...presented.certain, ...presented.doubtful]) {
      const until = bans.endOf(identity.digest, now);
      if (until > (longest?.until ?? 0)) longest = { identity, until };
    }
    return longest;
  }

  /**
   * What the lists of the policy file say of a request's client.
   *
   * @returns null: nothing; why the request is refused
   */
  listed(source: RequestSource, target: string, head: CheckedHead): ListEntry | null | string {
    const { lists } = this.#set;
    if (lists === null) return null;
    const { origin } = this.peerOf(source.socket);
    const presented = lists.digests.size === 0 ? NOBODY : this.identitiesOf(source, target, head);
    if (typeof presented === 'string') return presented;
    const [certain, doubtful] = [presented.certain, presented.doubtful].map((some) =>
      some.map(({ digest }) => digest),
    );
    return entryFor(
      lists,
      certain ?? [],
      clientBytes(origin.peer, head.forwardedFor, this.options.trust),
      doubtful,
    );
  }

  /**
   * All that a request may be known by: its address, and what it presents to the identifiers of the file.
   *
   * @returns why the request is refused
   */
  identitiesOf(
    { rawHeaders, socket }: RequestSource,
    target: string,
    { forwardedFor }: CheckedHead,
  ): PresentedIdentities | string {
    const peer = this.peerOf(socket);
    const certain = [this.peers.address(peer, forwardedFor)];
    const doubtful: Identity[] = [];
    for (const identifier of this.#set.identifiers) {
      const found = identityOf(
        new Identified(),
        identifier,
        rawHeaders,
        target,
        forwardedFor,
        peer,
        this.peers,
      );
      if (typeof found !== 'string') {
        if (found !== null) certain.push(found);
        continue;
      }
      const all = allIdentitiesOf(identifier, rawHeaders, target, this.#table);
      if (typeof all === 'string') return all;
      doubtful.push(...all);
    }
    return { certain, doubtful };
  }

  /** @returns why the request is refused */
  #factsOf(
    { rawHeaders, plan: known }: RequestSource,
    { forwardedFor }: CheckedHead,
    origin: RequestOrigin,
  ): OverrideFacts | string {
    const address = clientBytes(origin.peer, forwardedFor, this.options.trust);
    const { planSources } = this.#table;
    // Anybody else could name the best of them.
    if (known !== undefined || planSources === null || !origin.trusted)
      return { address, plan: known ?? null };
    const named = presentedCredential(rawHeaders, planSources);
    if (named.kind === 'ambiguous') return 'the request names two different plans';
    return { address, plan: named.kind === 'one' ? named.value : null };
  }

  /** What the upstream gets to see of the header section; names and values in turn. */
  upstreamHeaders(rawHeaders: readonly string[], head: CheckedHead, origin: RequestOrigin): string[] {
    const headers = upstreamHeaders(rawHeaders, head, origin, this.options.headerFilter);
    const { planNames } = this.#table;
    if (planNames !== null && !origin.trusted) dropNominated(headers, planNames);
    return headers;
  }

  /** Answers the request with what became of the charge, now or later. */
  spend({ charge }: ChargedTo, request: ChargedRequest): void {
    const { metrics, limiter } = this.options;
    const exhausted = limiter.knownExhausted(charge);
    if (exhausted === null) {
      limiter.spend(charge, request);
      return;
    }
    metrics.deniedFromMemory++;
    request.denyFromMemory(
      exhausted.map(({ part, used, resetMs }) => {
        const { policy, capacity, limit: perWindow } = part;
        const told = { policy, quota: capacity, perWindow, remaining: 0, resetMs };
        return { ...told, part, used, limit: capacity, canNeverPass: false };
      }),
    );
  }

  /** Its policies decide, or refuse, without the store. */
  noteDegraded(charged: ChargedTo | null): void {
    for (const { policy, counter } of charged?.charge.parts ?? [])
      if (!counter.forUnproven) this.metrics.degraded(policy);
  }

  /** What the answer says of the credential that was presented. */
  learn({ identified }: ChargedTo, status: number): void {
    const { limiter } = this.options;
    const { credentials, pathValues } = identified;
    if (status >= 200 && status < 300) {
      // It takes a look at the whole request, so only once an hour for each credential.
      const isKnown = credentials.every((credential) => limiter.isProofFresh(credential));
      const provable = isKnown ? null : identified.provable;
      if (provable !== null) limiter.prove(provable);
      for (const value of pathValues) if (!limiter.isProofFresh(value)) limiter.prove(value);
    } else if (status === 401) {
      for (const credential of credentials) if (limiter.isProven(credential)) limiter.withdraw(credential);
    }
  }

  /** The client's address as an identity, whether a policy counts it or not. */
  addressIdentity(charged: ChargedTo | null, socket: PeerSocket, { forwardedFor }: CheckedHead): Identity {
    // Where an address answers for credentials, it is this one.
    const answering = charged?.charge.parts.find(({ credential }) => credential !== null);
    return answering?.identity ?? this.peers.address(this.peerOf(socket), forwardedFor);
  }

  /** Whose connection it is, before a request has come on it. */
  connectionIdentity(socket: PeerSocket): Identity {
    return this.peers.address(this.peerOf(socket), '');
  }

  /** Behind a trusted proxy, where each request names its own client. */
  addressOf({ forwardedFor }: CheckedHead, origin: RequestOrigin): string {
    return clientAddress(origin.peer, forwardedFor, this.options.trust);
  }

  /** What a probe is told: who it counts as, and why. */
  seenAs({ socket }: RequestSource, head: CheckedHead): ProbeView {
    const peer = this.peerOf(socket);
    return {
      digester: this.#table.digester,
      now: this.options.clock(),
      seen: () => ({
        identity: this.peers.address(peer, head.forwardedFor).digest,
        addressFrom: this.addressSource(head, peer.origin),
        isPeerTrusted: peer.origin.trusted,
        forwardedCount: head.forwardedFor.split(',').filter((entry) => entry.trim() !== '').length,
      }),
    };
  }

  /** Where a request's client address was read, for people. */
  addressSource(head: CheckedHead, origin: RequestOrigin): string {
    const { trust } = this.options;
    if (trust.kind === 'none' || !origin.trusted) return origin.isIntroduced ? 'PROXY header' : 'socket';
    if (this.addressOf(head, origin) === UNTRUSTED) return 'unreadable X-Forwarded-For';
    if (trust.kind === 'cidrs') return 'X-Forwarded-For, past trusted networks';
    return `X-Forwarded-For, ${trust.hops} trusted ${trust.hops === 1 ? 'proxy' : 'proxies'}`;
  }
}

function tableOf(set: PolicySet, digester: Digester, wallClock: Clock): Table {
  return {
    match: createMatcher(set),
    digester,
    tokens: new VerifiedTokens(digester, wallClock),
    identityHeaders: identityHeaders(set.identifiers),
    planSources: set.planHeader === null ? null : [{ kind: 'header', header: set.planHeader }],
    planNames: set.planHeader === null ? null : new Set([set.planHeader]),
    carriers: set.identifiers.flatMap(carriersOf),
  };
}
