/**
 * Decides logged requests by one policy file, with the live code. It never guesses: if a line does not have the
 * identifier of a policy, that policy is skipped for the request, and the request is counted as incomplete.
 */

import type { PeerSocket } from '#gateway/http/request-origin.ts';
import { carriersOf } from '#gateway/identity/credential.ts';
import { type Identity, identityOf } from '#gateway/identity/digest.ts';
import {
  type CredentialSource,
  type Identifier,
  isPresented,
  partsOf,
  readsBody,
} from '#gateway/identity/identifier.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { type KnownClient, type KnownIdentities, Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import type { Weighed, WeighedRequest } from '#gateway/workbench/rehearsal/rehearsed.ts';
import type {
  LoggedDigests,
  LoggedRequest,
  LoggedSender,
} from '#gateway/workbench/replay/formats/logged-request.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { InFlight } from './in-flight.ts';

interface JudgeOptions {
  readonly clock: Clock;
  /** Trusted proxies, for addresses in logs of other programs. */
  readonly trust: ProxyTrust;
  /** Salt for digests of addresses and keys in such logs. */
  readonly salt: string;
}

export interface Judged {
  readonly weighed: Weighed;
  /** Policies that match, but whose identity is not in the line. */
  readonly unknown: readonly Policy[];
}

/** Enough counters and credentials for ten million lines of a million clients; 210 MB when full. */
const COUNTERS_MAX = 4_194_304;
const CREDENTIALS_MAX = 1_048_576;
/** Maximum number of remembered connections by address, in each of two generations. */
const SOCKETS_MAX = 32_768;
const COVERS_MAX = 4096;
/** An IPv6 address in the log is counted by its /64. */
const LOGGED_PREFIX = 64;
const NO_POLICIES: readonly Policy[] = [];
const NO_IDENTITIES: readonly Identity[] = [];
const HOST: readonly string[] = ['Host', 'log'];

export class Judge {
  readonly #rehearsal: Rehearsal;
  readonly #trust: ProxyTrust;
  readonly #identifierOf: ReadonlyMap<string, string>;
  /** Identifiers of the policies in a line, by that part of the line. */
  readonly #lookedAt = new Map<string, ReadonlySet<string>>();
  #sockets = new Map<string, PeerSocket>();
  #olderSockets = new Map<string, PeerSocket>();
  #digests: LoggedDigests | null = null;
  readonly #clock: Clock;
  readonly #inFlight: InFlight<WeighedRequest>;
  /** Number of requests in flight whose duration is unknown. */
  endless = 0;
  readonly #sender = (cover: Cover): KnownIdentities => this.#knownIdentities(cover);

  constructor(set: PolicySet, { clock, trust, salt }: JudgeOptions) {
    this.#trust = trust;
    this.#clock = clock;
    this.#rehearsal = new Rehearsal(set, {
      clock,
      trust,
      salt,
      countersMax: COUNTERS_MAX,
      credentialsMax: CREDENTIALS_MAX,
    });
    this.#inFlight = new InFlight((weighed) => this.#rehearsal.ended(weighed));
    this.#identifierOf = new Map(set.policies.map(({ name, identifier }) => [name, identifier.name]));
  }

  /** Whether counters have been dropped, or will be soon. */
  get isFull(): boolean {
    return this.#rehearsal.remembered >= COUNTERS_MAX;
  }

  judge(request: LoggedRequest): Judged {
    const { method, target, digests, sender } = request;
    this.#inFlight.endBy(this.#clock());
    if (method === null || isRefusedUncounted(digests)) return MALFORMED;
    if (digests !== null) {
      this.#digests = digests;
      const weighed = this.#rehearsal.weighKnown(method, target, this.#sender, knownOf(digests));
      return {
        weighed,
        unknown: this.#unknown(weighed, (identifier) => !this.#isAbsent(identifier, digests)),
      };
    }
    if (sender === null) return MALFORMED;
    const weighed = this.#rehearsal.weigh({
      method,
      target,
      rawHeaders: headersOf(sender),
      socket: this.#socketOf(this.#trust.kind === 'none' ? sender.client : sender.peer),
    });
    return { weighed, unknown: this.#unknown(weighed, (identifier) => !isTold(identifier, sender)) };
  }

  /** Applies the outcome of an admitted request. */
  answered({ weighed }: Judged, { status, digests, durationMs }: LoggedRequest): void {
    if (weighed.kind !== 'decided') return;
    const wasDenied = digests?.decision === 'deny';
    const hasLeft = status === 0 || status === CLIENT_LEFT;
    this.#rehearsal.answered(weighed, wasDenied ? null : hasLeft ? 'unknown' : status);
    if (weighed.spent.leases === null) return;
    // If the log says that a request was denied, its duration is unknown.
    const isKnown = durationMs !== null && !wasDenied;
    if (!isKnown) this.endless++;
    this.#inFlight.add(weighed, this.#clock() + (isKnown ? durationMs : 0));
  }

  /** Returns policies of the cover that charge nobody, because the line does not have the identity. */
  #unknown(weighed: Weighed, isUnknown: (identifier: Identifier) => boolean): readonly Policy[] {
    if (weighed.kind === 'malformed' || weighed.cover === null) return NO_POLICIES;
    const { identifiers, policies } = weighed.cover;
    const charged = weighed.kind === 'decided' ? weighed.charged.identified.identities : [];
    let unknown = NO_POLICIES;
    for (let i = 0; i < identifiers.length; i++) {
      const identifier = identifiers[i];
      if (identifier === undefined || (charged[i] ?? null) !== null || !isUnknown(identifier)) continue;
      unknown = [...unknown, ...policies.filter((policy) => policy.identifier === identifier)];
    }
    return unknown;
  }

  #knownIdentities({ identifiers }: Cover): KnownIdentities {
    const digests = this.#digests;
    const identities: (Identity | null)[] = [];
    let credential: Identity | null = null;
    let unproven = NO_IDENTITIES;
    for (const identifier of identifiers) {
      const digest = digestOf(identifier, digests);
      const known = digest === null ? null : identityOf(digest);
      const identity = identifier.kind === 'everyone' ? this.#rehearsal.enforcement.table.everyone : known;
      identities.push(identity);
      if (identity === null || !isPresented(identifier)) continue;
      credential = identity;
      if (digests?.unproven.includes(identifier.name) === true && digests.address !== null)
        unproven = [...unproven, identity];
    }
    return {
      identities,
      address: () => identityOf(digests?.address ?? ''),
      isUnproven: (identity) => unproven.includes(identity),
      provable: digests?.proves === true ? credential : null,
    };
  }

  /** Whether the gateway looked for such a credential when it wrote the line, and found none. */
  #isAbsent({ name }: Identifier, { policies }: LoggedDigests): boolean {
    let lookedAt = this.#lookedAt.get(policies);
    if (lookedAt === undefined) {
      const names = policies.slice(1, -1).split('","');
      lookedAt = new Set(names.flatMap((policy) => this.#identifierOf.get(policy) ?? []));
      if (this.#lookedAt.size >= COVERS_MAX) this.#lookedAt.clear();
      this.#lookedAt.set(policies, lookedAt);
    }
    return lookedAt.has(name);
  }

  /** Returns one object for each address, because the live code stores data of a connection by its socket. */
  #socketOf(address: string): PeerSocket {
    let socket = this.#sockets.get(address);
    if (socket !== undefined) return socket;
    if (this.#sockets.size >= SOCKETS_MAX) {
      this.#olderSockets = this.#sockets;
      this.#sockets = new Map();
    }
    socket = this.#olderSockets.get(address) ?? { remoteAddress: copyOf(address) };
    this.#sockets.set(copyOf(address), socket);
    return socket;
  }
}

/** Status in logs of NGINX and Traefik for a client that left. */
const CLIENT_LEFT = 499;
const MALFORMED: Judged = {
  weighed: { kind: 'malformed', status: 400, reason: 'as logged' },
  unknown: NO_POLICIES,
};

/** Returns names of a client for lists, and its plan. */
function knownOf({ identities, address, plan }: LoggedDigests): KnownClient {
  return {
    plan,
    digests: () => {
      const digests = address === null ? [] : [address];
      for (let i = 1; i < identities.length; i += 2) digests.push(identities[i] ?? '');
      return digests;
    },
  };
}

/** Whether the gateway refused the request before it matched policies. */
function isRefusedUncounted(digests: LoggedDigests | null): boolean {
  return digests?.decision === 'malformed' || digests?.decision === 'banned';
}

function digestOf(identifier: Identifier, digests: LoggedDigests | null): string | null {
  if (digests === null) return null;
  const { identities, address } = digests;
  for (let i = 0; i < identities.length; i += 2) {
    if (identities[i] === identifier.name) return identities[i + 1] ?? null;
  }
  return identifier.kind === 'address' && identifier.ipv6Prefix === LOGGED_PREFIX ? address : null;
}

/** Whether the log shows if the request presents such a credential. */
function isTold(identifier: Identifier, { holds, concealed }: LoggedSender): boolean {
  if (!isPresented(identifier)) return true;
  if (readsBody(identifier)) return false;
  return partsOf(identifier)
    .flatMap(carriersOf)
    .map(headerOf)
    .every((header) => header === null || (holds(header) && !concealed.includes(header)));
}

/** Returns the header field with the credential; null if it is in the request line, which every log has. */
function headerOf(source: CredentialSource): string | null {
  switch (source.kind) {
    case 'header':
      return source.header;
    case 'bearer':
      return 'authorization';
    case 'cookie':
      return 'cookie';
    case 'query':
      return null;
    default:
      return source satisfies never;
  }
}

function headersOf({ headers, forwardedFor }: LoggedSender): readonly string[] {
  if (headers.length === 0 && forwardedFor === '') return HOST;
  const list = [...HOST];
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? '').toLowerCase();
    if (!SET_ASIDE.has(name)) list.push(name, headers[i + 1] ?? '');
  }
  if (forwardedFor !== '') list.push('x-forwarded-for', forwardedFor);
  return list;
}

/** Headers of the framing, which the logging proxy has checked, and those that are passed separately. */
const SET_ASIDE: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
]);

/** Copies a text, because a slice of a log's line would keep the whole portion of the log in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
