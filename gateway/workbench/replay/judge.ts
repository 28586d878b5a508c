/**
 * Decides logged requests by one policy file, with the live code. It never guesses: if a line does not have the
 * identifier of a policy, that policy is skipped for the request, and the request is counted as incomplete. A policy with
 * `unless` then counts the request as a stranger's, and a note says so.
 */

import type { PeerSocket } from '#gateway/http/request-origin.ts';
import { carriersOf } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import {
  type CredentialSource,
  type Identifier,
  isPresented,
  partsOf,
  readsBody,
} from '#gateway/identity/identifier.ts';
import type { Ending } from '#gateway/limiter/outcome.ts';
import { exemptBy } from '#gateway/policy/match.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { locate } from '#gateway/request/reading/read.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import type { Rehearsed } from '#gateway/workbench/rehearsal/rehearsed.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import type { LoggedDigests, LoggedRequest, LoggedSender } from './formats/logged-request.ts';
import { Learning } from './learning.ts';
import { LoggedClient, NO_PROXY } from './logged-client.ts';

export interface JudgeOptions {
  readonly clock: Clock;
  /** Trusted proxies, for addresses in logs of other programs. */
  readonly trust: ProxyTrust;
  /** Salt for digests of addresses and keys in such logs. */
  readonly salt: string;
}

/** The log says that a ban refused the request. Bans are not part of the policy file. */
interface LoggedBan {
  readonly kind: 'logged-ban';
}

export interface Judged {
  readonly weighed: Rehearsed | LoggedBan;
  /** Policies that match, but whose identity is not in the line. */
  readonly unknown: readonly Policy[];
}

/** Enough counters and credentials for ten million lines of a million clients; 340 MB when full. */
const COUNTERS_MAX = 4_194_304;
const SOCKETS_MAX = 65_536;
const NO_POLICIES: readonly Policy[] = [];
/** A host that no policy can name. */
const HOST: readonly string[] = ['Host', 'log.invalid'];

export class Judge {
  readonly #rehearsal: Rehearsal;
  readonly #trust: ProxyTrust;
  readonly #identifiersOf: ReadonlyMap<string, readonly string[]>;
  /** By address. The live code keeps data of a connection by its socket, which saves a third of the time. */
  readonly #sockets = new Map<string, PeerSocket>();
  readonly #clock: Clock;
  readonly learning: Learning;
  /** Number of requests without a readable client in X-Forwarded-For. As in the gateway, they count as one client. */
  unreadChains = 0;

  constructor(set: PolicySet, { clock, trust, salt }: JudgeOptions) {
    this.learning = new Learning(set);
    this.#trust = trust;
    this.#clock = clock;
    this.#rehearsal = new Rehearsal(set, {
      clock,
      trust,
      salt,
      countersMax: COUNTERS_MAX,
    });
    this.#identifiersOf = new Map(
      set.policies.map((policy) => [
        policy.name,
        [policy.identifier, ...exemptBy(policy)].map(({ name }) => name),
      ]),
    );
  }

  /** Whether counters have been dropped, or will be soon. */
  get isFull(): boolean {
    return this.#rehearsal.remembered >= COUNTERS_MAX;
  }

  judge(request: LoggedRequest): Judged {
    const { method, target, digests, sender } = request;
    const learned = this.learning.policiesAt(this.#clock());
    if (learned !== null) this.#rehearsal.use(learned);
    if (digests?.decision === 'banned') return BANNED;
    if (method === null || digests?.decision === 'malformed') return MALFORMED;
    if (digests !== null) {
      const weighed = this.#askLogged(method, target, digests);
      return {
        weighed,
        unknown: this.#unknown(weighed, (identifier) => !this.#isAbsent(identifier, digests)),
      };
    }
    if (sender === null) return MALFORMED;
    const weighed = this.#rehearsal.ask({
      method,
      target,
      rawHeaders: headersOf(sender, chainOf(sender, this.#trust)),
      socket: this.#socketOf(usesChain(sender, this.#trust) ? sender.peer : sender.client),
    });
    if (weighed.kind !== 'malformed' && weighed.request.caller.address.bytes === null) this.unreadChains++;
    return { weighed, unknown: this.#unknown(weighed, (identifier) => !isTold(identifier, sender)) };
  }

  /** Applies the outcome of an admitted request. */
  answered({ weighed }: Judged, request: LoggedRequest): void {
    const { status, digests } = request;
    const wasDenied = digests?.decision === 'deny';
    const hasLeft = status === 0 || status === CLIENT_LEFT;
    const ending = wasDenied ? endingInstead(weighed) : hasLeft ? 'unknown' : status;
    if (weighed.kind === 'uncovered') this.#rehearsal.learn(weighed, ending);
    if (weighed.kind !== 'allow' && weighed.kind !== 'deny') return;
    this.#rehearsal.answered(weighed, ending, null, wasDenied ? null : bodyBytesOf(request));
    // Limits of requests in flight are left out, so each request ends at once.
    this.#rehearsal.ended(weighed);
  }

  /** Returns policies of the cover that charge nobody, because the line does not have the identity. */
  #unknown(weighed: Rehearsed, isUnknown: (identifier: Identifier) => boolean): readonly Policy[] {
    if (weighed.kind === 'malformed' || weighed.kind === 'banned' || weighed.kind === 'listed')
      return NO_POLICIES;
    const { cover } = weighed.match;
    const isAllowed = weighed.kind === 'uncovered' && weighed.allowedBy !== null;
    if (cover === null || isAllowed) return NO_POLICIES;
    const { identified } = weighed.kind === 'uncovered' ? weighed : weighed.charged;
    const missing = new Set<Identifier>();
    const look = (identifiers: readonly Identifier[], found: readonly (Identity | null)[] = []): void => {
      for (const [i, identifier] of identifiers.entries())
        if ((found[i] ?? null) === null && isUnknown(identifier)) missing.add(identifier);
    };
    look(cover.identifiers, identified?.identities);
    look(cover.distinct, identified?.values);
    if (missing.size === 0) return NO_POLICIES;
    return cover.policies.filter((policy) =>
      [policy.identifier, ...exemptBy(policy), policy.distinct].some(
        (one) => one !== null && missing.has(one),
      ),
    );
  }

  /** Asks about a line of the gateway's own log, which has digests instead of a header section. */
  #askLogged(method: string, target: string, digests: LoggedDigests): Rehearsed {
    const { table } = this.#rehearsal;
    const req = { method, url: target, rawHeaders: HOST, httpVersion: '1.1' };
    const located = locate(table, req, NO_PROXY);
    if (located.kind === 'malformed') return located;
    const client = new LoggedClient(digests, located.match, table, (identifier) =>
      this.#isAbsent(identifier, digests),
    );
    for (const credential of client.counted.credentials)
      this.#rehearsal.believe(credential, client.unproven.includes(credential));
    const plan = digests.plan ?? undefined;
    const read = { req, caller: client, sentBody: null, isVouchedFor: false, plan, logged: client };
    return this.#rehearsal.spend({ ...located, ...read });
  }

  /** Whether the gateway looked for such a credential when it wrote the line, and found none. */
  #isAbsent(identifier: Identifier, { policies }: LoggedDigests): boolean {
    // A client always has an address.
    if (identifier.kind === 'first' && identifier.address !== null) return false;
    return policies.some((policy) => this.#identifiersOf.get(policy)?.includes(identifier.name) === true);
  }

  #socketOf(address: string): PeerSocket {
    let socket = this.#sockets.get(address);
    if (socket !== undefined) return socket;
    if (this.#sockets.size >= SOCKETS_MAX) this.#sockets.clear();
    // This copies the text, because a slice of a line would keep the whole portion of the log in memory.
    socket = { remoteAddress: Buffer.from(address, 'latin1').toString('latin1') };
    this.#sockets.set(socket.remoteAddress ?? '', socket);
    return socket;
  }
}

/** Status in logs of NGINX and Traefik for a client that left. */
const CLIENT_LEFT = 499;
const MALFORMED: Judged = {
  weighed: { kind: 'malformed', reason: 'as logged' },
  unknown: NO_POLICIES,
};

const BANNED: Judged = { weighed: { kind: 'logged-ban' }, unknown: NO_POLICIES };

/**
 * Returns how a request ends whose denial was logged. What the application would have answered is unknown, so it costs the
 * reserve. It counts neither as a failure nor as a success.
 */
function endingInstead(weighed: Judged['weighed']): Ending {
  const counts =
    weighed.kind === 'allow' && weighed.spent.buckets.every(({ policy }) => policy.count === 'request');
  return counts ? 'unknown' : null;
}

function bodyBytesOf({ method, status, bytes }: LoggedRequest): number | null {
  return method === 'HEAD' || status === 204 || status === 304 ? 0 : bytes;
}

/** Whether X-Forwarded-For names the client. Without it, the client is the one that the logging proxy names. */
function usesChain({ forwardedFor }: LoggedSender, trust: ProxyTrust): boolean {
  return trust.kind !== 'none' && forwardedFor !== '';
}

/** Returns X-Forwarded-For as the trusted proxies sent it. If the log does not have it, they all named the client. */
function chainOf({ forwardedFor, client }: LoggedSender, trust: ProxyTrust): string {
  if (forwardedFor !== '' || trust.kind !== 'hops') return forwardedFor;
  return new Array<string>(trust.hops).fill(client).join(', ');
}

/** Whether the log shows if the request presents such a credential. */
function isTold(identifier: Identifier, { holds }: LoggedSender): boolean {
  if (!isPresented(identifier)) return true;
  if (readsBody(identifier)) return false;
  return partsOf(identifier)
    .flatMap(carriersOf)
    .map(headerOf)
    .every((header) => header === null || holds(header));
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

function headersOf({ headers }: LoggedSender, forwardedFor: string): readonly string[] {
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
