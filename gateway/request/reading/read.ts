/**
 * Reads a request: where it goes, then what the policy file says about it. Nothing is spent, counted or answered here.
 * The result depends only on the policy table, the request as sent, where it came from, and the bans and proofs that
 * are known.
 */
import { isAuthority, requestHost } from '#gateway/http/host.ts';
import { type CheckedHead, EMPTY_HEAD } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { presentedValues } from '#gateway/identity/credential.ts';
import { type Charge, chargeFor, joined } from '#gateway/limiter/charge.ts';
import { unitsOf } from '#gateway/limiter/units.ts';
import { type OverrideFacts, PLAN } from '#gateway/policy/clients.ts';
import type { Cover, Match, PathReading } from '#gateway/policy/match.ts';
import { authorityOf } from '#gateway/policy/target.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';
import { identify } from './identify.ts';
import { type Known, type ListableRequest, listingOf } from './listing.ts';
import type { HeaderSection, PolicyTable } from './policy-table.ts';
import { Presented } from './presented.ts';
import { isProven } from './prove.ts';
import type { ChargedTo, KnownAs, Malformed, Reading, Uncovered } from './reading.ts';

/** A request as it was sent. Requests of node:http have this shape. */
export interface Sent extends HeaderSection {
  readonly method?: string | undefined;
  /** The request target. Each code unit of the string stands for one byte. */
  readonly url?: string | undefined;
}

/** Maximum number of charges that a connection keeps. */
const CHARGES_MAX = 64;

/** A request whose header section and target are well-formed. */
export interface Located {
  readonly kind: 'located';
  readonly head: CheckedHead;
  readonly match: Match;
  /** The canonical host; empty if nothing in the policy file depends on it. */
  readonly host: string;
  readonly presented: Presented;
}

export interface ReadableRequest extends ListableRequest {
  readonly head: CheckedHead;
  /** The client's plan, if it is known without a header. */
  readonly plan?: string | undefined;
}

/** The place of a request that is not located yet. */
export const NOWHERE: Omit<Located, 'kind'> = {
  head: EMPTY_HEAD,
  match: {
    ok: true,
    target: '',
    path: '',
    paths: [],
    readings: [],
    cover: null,
    unmet: [],
    closedBy: null,
    excludedBy: null,
  },
  host: '',
  presented: new Presented([], ''),
};

const UNCOVERED: Uncovered = { kind: 'uncovered', allowedBy: null, identified: null };
const NO_HOST = { ok: true, host: '' } as const;

export function malformed(reason: string): Malformed {
  return { kind: 'malformed', reason };
}

/** Checks the header section and the target, and finds the route in the policy file. */
export function locate(
  table: PolicyTable,
  sent: Sent,
  origin: Pick<RequestOrigin, 'trusted'>,
): Located | Malformed {
  const head = table.checkHead(sent, origin);
  if (!head.ok) return malformed(head.reason);
  const { method = 'GET', url = '', rawHeaders } = sent;
  const authority = authorityOf(url);
  if (authority !== null && !isAuthority(authority))
    return malformed('the request target has no host, or more than a host and a port');
  const found = table.usesHosts ? requestHost(head, authority, origin.trusted) : NO_HOST;
  if (!found.ok) return malformed(found.reason);
  const { host } = found;
  const match = table.match(method, url, rawHeaders, host);
  if (!match.ok) return malformed(match.reason);
  return { kind: 'located', head, match, host, presented: new Presented(rawHeaders, match.target) };
}

/**
 * Reads a request that is located. Read it again when its body is there, or when more proofs are known.
 *
 * @param known the bans and proofs that this process knows
 */
export function read(request: ReadableRequest, known: Known): Reading {
  const { cover } = request.match;
  const listing = listingOf(request, known);
  if (listing !== null) return listing;
  return cover === null ? UNCOVERED : chargedTo(cover, request, known);
}

function chargedTo(
  cover: Cover,
  request: ReadableRequest,
  { limiter }: Known,
): ChargedTo | Uncovered | Malformed {
  const { caller, head, req } = request;
  const known = caller.charges?.get(cover);
  if (known !== undefined) return known;
  const identified = identify(cover, request);
  if (typeof identified === 'string') return malformed(identified);
  const facts = cover.hasOverrides ? overrideFactsOf(request, identified) : null;
  if (typeof facts === 'string') return malformed(facts);
  const chargeOn = (covering: Cover, as: KnownAs): Charge | null =>
    chargeFor(
      covering,
      as,
      (identifier) => caller.identity(identifier),
      (credential) => isProven(credential, request, limiter),
      facts,
      (counted, capacity) => unitsOf(counted, capacity, req.rawHeaders, head),
      (group) => group.classify(request, limiter),
    );
  const { readings } = request.match;
  const isLogged = request.logged !== undefined;
  const charge =
    readings.length === 0 || isLogged
      ? chargeOn(cover, identified)
      : joined(readings.map((reading) => chargeForReading(reading, request, chargeOn)));
  if (charge === null) return { ...UNCOVERED, identified };
  const charged = { kind: 'charged', charge, identified, plan: facts?.plan ?? null } as const;
  const { charges } = caller;
  if (cover.isByAddress && charges !== null && charges.size < CHARGES_MAX) charges.set(cover, charged);
  return charged;
}

/** Charges the values that one reading of the path has. Only one of the readings is the application's, but not known. */
function chargeForReading(
  { path, cover }: PathReading,
  request: ReadableRequest,
  chargeOn: (cover: Cover, as: KnownAs) => Charge | null,
): Charge | null {
  if (cover === null) return null;
  const identified = identify(cover, request, path);
  return typeof identified === 'string' ? null : chargeOn(cover, identified);
}

/** Returns the facts that overrides depend on. @returns a string with the reason for a refusal */
function overrideFactsOf(request: ReadableRequest, identified: KnownAs): OverrideFacts | string {
  const { req, plan: known, caller } = request;
  const address = caller.address.bytes;
  const { planSources, set } = caller.table;
  const words = set.hasProgramLimits ? userAgentWords(req.rawHeaders) : [];
  const inFile = (): string | null =>
    set.plans?.find(digestsOf(identified, caller.identity().digest), address) ?? null;
  if (known !== undefined) return { address, plan: known, words };
  // Only a trusted proxy may name a plan, because a client would name the best one.
  if (planSources.length > 0 && caller.origin.trusted) {
    const [plan, another] = presentedValues(req.rawHeaders, planSources);
    if (another !== undefined) return TWO_PLANS;
    if (plan !== undefined) return { address, plan, words };
  }
  const signed = signedPlan(request);
  return typeof signed === 'string' ? signed : { address, plan: signed.plan ?? inFile(), words };
}

const TWO_PLANS = 'the request names two different plans';

/**
 * Returns the plan that the valid tokens of a request name.
 *
 * @returns a string with the reason for a refusal
 */
function signedPlan({
  presented,
  caller: { table },
}: ReadableRequest): { readonly plan: string | null } | string {
  const plans = new Set<string>();
  for (const identifier of table.planTokens) {
    const named = presented.plansOf(identifier, table);
    if (typeof named === 'string') return named;
    for (const plan of named) if (PLAN.test(plan)) plans.add(plan);
  }
  const [plan = null] = plans;
  return plans.size > 1 ? TWO_PLANS : { plan };
}

function* digestsOf({ credentials, identities }: KnownAs, address: string): Iterable<string> {
  for (const { digest } of credentials) yield digest;
  for (const identity of identities) if (identity !== null) yield identity.digest;
  yield address;
}
