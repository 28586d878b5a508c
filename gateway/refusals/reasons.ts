/**
 * Every reason for which the gateway answers a request itself, in one table: how the client is told, how the request is
 * counted and logged, and how `floodgate why` explains it. Whatever says why looks here. To add a reason, add a row.
 *
 * - `code`: what the client gets; codes.ts has the status, the header fields and the page of each code.
 * - `text`: the message for the client. A function if it has names or numbers; null if whoever finds the fault words it.
 * - `outcome`: label of `floodgate_requests_total`; null if the request is counted by what the policies decided.
 * - `logged`: `decision` in the access log; null if it is what the policies decided.
 * - `kind`: kind of the refusal in its id and its record. Rows without it have no id, so `why` knows nothing of them.
 * - `name`: stands in the record in place of a policy; `counted`: in place of an identifier.
 * - `why`, `advice`: what happened, and how to change it, by the record of the refusal.
 * - `briefly`: what happened, if only the id of the refusal is known.
 */
import { BOUND_NAMES, BOUNDS, type BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import { HEADER_ADVICE, sizeText } from '#gateway/http/header-size.ts';
import type { LoggedDecision } from '#gateway/observe/log-line.ts';
import type { Outcome } from '#gateway/observe/metrics/metrics.ts';
import { GROUPS } from '#gateway/policy/groups.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { ErrorCode } from './codes.ts';
import type { RefusalKind } from './decision-ids.ts';
import type { DecisionRecord, PartialRecord } from './decision-record.ts';
import {
  allowedText,
  groupText,
  groupWhy,
  limitAdvice,
  limitText,
  limitWhy,
  policyText,
} from './limit-texts.ts';

export interface Reason {
  readonly code: ErrorCode;
  readonly text: unknown;
  readonly outcome?: Outcome | null;
  readonly logged?: LoggedDecision | null;
  readonly kind?: RefusalKind;
  readonly name?: string;
  readonly counted?: string;
  readonly why?: (record: DecisionRecord) => readonly string[];
  readonly advice?: (record: DecisionRecord) => string;
  readonly briefly?: (record: PartialRecord) => string;
}

/** A reason whose refusals have an id and a record. */
type RecordedReason = Reason & Required<Pick<Reason, 'kind' | 'why' | 'advice' | 'briefly'>>;

const OPERATOR_BAN = 'operator ban';

export const REASONS = {
  policyLimit: {
    code: 'gateway_rate_limited',
    text: limitText,
    outcome: 'denied',
    logged: 'deny',
    kind: 'deny',
    why: limitWhy,
    advice: limitAdvice,
    briefly: ({ policy, isUnproven, ...rest }) => {
      const by = isUnproven === true ? ", by the client's address with unproven keys" : '';
      const allowed = allowedText(rest);
      const allows = allowed === null ? '' : `: it allows ${allowed}`;
      return `The limit of ${policyText(policy)} was reached${by}${allows}.`;
    },
  },
  /** The store is unavailable, and the policy has `onStoreFailure: deny`. */
  storeUnavailable: {
    code: 'gateway_store_unavailable',
    text: 'limits cannot be checked at the moment; try again in a second',
    outcome: 'unavailable',
    logged: 'unavailable',
    kind: 'unavailable',
    why: ({ policy }) => [unavailableWhy(`policy ${policy}`)],
    advice: ({ file, line }) =>
      `To let requests pass while the store is away, set onStoreFailure: local in ${file}:${line}.`,
    briefly: ({ policy }) => unavailableWhy(policyText(policy)),
  },
  /** An operator or a policy has banned the client or its credential. `name` is for bans by operators. */
  ban: {
    code: 'gateway_banned',
    text: 'The operator has blocked this client for a while. Wait for the seconds in Retry-After.',
    outcome: 'banned',
    logged: 'banned',
    kind: 'banned',
    name: OPERATOR_BAN,
    why: ({ policy }) => [
      policy === OPERATOR_BAN ? 'An operator has banned this client.' : `This client has a ${policy}.`,
    ],
    advice: ({ identity }) =>
      `To see the reason, run floodgate inspect ${identity}; to let it in again, floodgate unban ${identity}.`,
    briefly: ({ policy }) => `The client was banned (${policy ?? `by ${policyText(policy)}`}).`,
  },
  /** The list `deny` names the client. Its entry may ask for `gateway_forbidden` in place of the code. */
  listedClient: {
    code: 'gateway_denied',
    text: (entry: Pick<ListEntry, 'reason'>) => listText('blocked this client', entry),
    outcome: 'denied',
    logged: 'deny',
    kind: 'listed',
    name: 'deny list',
    why: () => ['The list deny of the policy file names this client.'],
    advice: ({ file, line }) => `To let it in, remove the entry in ${file}:${line}; it applies at once.`,
    briefly: listBriefly,
  },
  /** The list `deny` closes the route to everybody. Its entry may ask for `gateway_forbidden` too. */
  closedRoute: {
    code: 'gateway_denied',
    text: (entry: Pick<ListEntry, 'reason'>) => listText('closed this route', entry),
    outcome: 'denied',
    logged: 'deny',
    kind: 'listed',
    name: 'closed route',
    why: () => ['The list deny of the policy file names this route.'],
    advice: ({ file, line }) => `To open the route, remove the entry in ${file}:${line}; it applies at once.`,
    briefly: listBriefly,
  },
  clientShare: {
    code: 'gateway_client_busy',
    text: (bound: BoundName) => shareText('client', bound),
    outcome: null,
    logged: null,
    kind: 'busy',
    counted: 'client address',
    why: (record) => boundWhy('one client address', record),
    advice: () =>
      'To let one address hold more, set a larger GATEWAY_CLIENT_SHARE; if the address is a proxy of yours, name it in GATEWAY_TRUSTED_PROXIES.',
    briefly: boundBriefly,
  },
  networkShare: {
    code: 'gateway_client_busy',
    text: (bound: BoundName) => shareText('network', bound),
    outcome: null,
    logged: null,
    kind: 'busy',
    counted: 'IPv6 network',
    why: (record) => boundWhy('the clients of one IPv6 network', record),
    advice: (record) =>
      `An IPv6 /48 has a quarter of what all may hold. To let it hold more, raise ${variableOf(record)}.`,
    briefly: boundBriefly,
  },
  bound: {
    code: 'gateway_overloaded',
    text: (bound: BoundName) => `there are too many ${BOUNDS[bound].held}; try again later`,
    outcome: null,
    logged: null,
    kind: 'busy',
    counted: 'all clients',
    why: (record) => boundWhy('all clients together', record),
    advice: (record) => `To let more be held at once, raise ${variableOf(record)}.`,
    briefly: boundBriefly,
  },
  /** The application is slow, and `protect` is on. */
  protect: {
    code: 'gateway_overloaded',
    text: 'the application is overloaded; try again later',
    outcome: null,
    logged: null,
    kind: 'busy',
    name: 'protect',
    why: ({ limit, used, identifier }) => [
      `The application replied slowly, so at most ${limit} requests were in progress there (protect), and ${used} were. This one had ${identifier} and waited too long.`,
    ],
    advice: ({ file }) =>
      `To let such requests go first, set priority: high in their policy in ${file}; to refuse none, set protect: shadow.`,
    briefly: boundBriefly,
  },

  // Faults of a request. If it was not counted before, it is counted and logged as `malformed`.
  malformed: { code: 'gateway_bad_request', text: null, outcome: 'malformed', logged: 'malformed' },
  notHttp1: { code: 'gateway_bad_request', text: 'the request is not valid HTTP/1.1' },
  notEncrypted: {
    code: 'gateway_bad_request',
    text: 'this port is for HTTPS: begin the address with https://',
  },
  otherVersion: { code: 'gateway_bad_request', text: 'the request is neither HTTP/1.1 nor HTTP/1.0' },
  /** RFC 9112 6.1: such a message may have passed a proxy that did not understand its framing. */
  chunkedHttp10: {
    code: 'gateway_bad_request',
    text: 'a request of HTTP/1.0 cannot have Transfer-Encoding',
  },
  method: { code: 'gateway_method_not_allowed', text: 'CONNECT and TRACE are not served here' },
  headerBytes: {
    code: 'gateway_header_too_large',
    text: (max: number) => `the header section is larger than ${sizeText(max)}; ${HEADER_ADVICE}`,
  },
  headerFields: {
    code: 'gateway_header_too_large',
    text: (max: number) => `the header section has more than ${max} fields`,
  },
  slowRequest: { code: 'gateway_request_timeout', text: 'the request did not arrive in time' },
  slowBody: { code: 'gateway_request_timeout', text: 'the request body did not arrive in time' },
  smallPieces: {
    code: 'gateway_request_timeout',
    text: (bytesMin: number) =>
      `the request body comes in too small pieces; send at least ${bytesMin} bytes in each`,
  },

  // Faults of the upstream. The request was admitted, and is counted and logged so.
  upstreamUnavailable: { code: 'gateway_upstream_unavailable', text: null },
  upstreamTimeout: { code: 'gateway_upstream_timeout', text: 'the upstream did not answer in time' },
} as const satisfies Readonly<Record<string, Reason>>;

/** The reason by the result of a bound. */
export const BOUND_REASONS = {
  client: REASONS.clientShare,
  network: REASONS.networkShare,
  total: REASONS.bound,
} as const satisfies Readonly<Record<BoundRefusal, RecordedReason>>;

/** The reason by what an entry of the list deny names. */
export const LIST_REASONS = {
  client: REASONS.listedClient,
  route: REASONS.closedRoute,
} as const satisfies Readonly<Record<ListEntry['names'], RecordedReason>>;

/** The limits of policies for all clients of a group together. `counted` is their identifier. */
export const GROUP_REASONS = GROUPS.map((words) => ({
  ...REASONS.policyLimit,
  code: words.code,
  text: (first: Parameters<typeof limitText>[0]) => groupText(words, first),
  counted: words.together,
  why: (record: DecisionRecord) => groupWhy(words, record),
  advice: ({ file, line, path }: DecisionRecord) =>
    `To let more ${words.key} in, raise the limit of ${words.key} in ${file}:${line}; it applies at once. To exempt ${path}, add it to except.`,
  briefly: ({ policy, ...rest }: PartialRecord) => {
    const allowed = allowedText(rest);
    const allows = allowed === null ? '' : ` of ${allowed}`;
    const who = words.key.charAt(0).toUpperCase() + words.key.slice(1);
    return `${who} had used up the limit${allows} for all of them together (${policyText(policy)}).`;
  },
})) satisfies readonly RecordedReason[];

type LimitReason = typeof REASONS.policyLimit | (typeof GROUP_REASONS)[number];

/** Returns the reason why a policy denies. @param policy undefined if it is not known */
export function limitReasonOf(policy: Pick<Policy, 'onlyFor' | 'shareOf'> | undefined): LimitReason {
  const together = policy?.shareOf === null ? policy.onlyFor?.words.together : undefined;
  return GROUP_REASONS.find(({ counted }) => counted === together) ?? REASONS.policyLimit;
}

/** Returns the name in the record for the clients that a policy counts. */
export function countedBy(policy: Pick<Policy, 'onlyFor' | 'shareOf' | 'identifier'>): string {
  const reason = limitReasonOf(policy);
  return 'counted' in reason ? reason.counted : policy.identifier.name;
}

/** Returns the reason of a recorded refusal. */
export function reasonOf({
  decision,
  policy,
  identifier,
}: Pick<PartialRecord, 'decision' | 'policy' | 'identifier'>): RecordedReason {
  switch (decision) {
    case 'deny':
      return GROUP_REASONS.find(({ counted }) => counted === identifier) ?? REASONS.policyLimit;
    case 'unavailable':
      return REASONS.storeUnavailable;
    case 'banned':
      return REASONS.ban;
    case 'listed':
      return policy === REASONS.closedRoute.name ? REASONS.closedRoute : REASONS.listedClient;
    case 'busy':
      if (policy === REASONS.protect.name) return REASONS.protect;
      return Object.values(BOUND_REASONS).find(({ counted }) => counted === identifier) ?? REASONS.bound;
    default:
      return decision satisfies never;
  }
}

/** Name in the record in place of a policy, if the policy made a ban. @param bucket of the policy */
export function banName(bucket: string): string {
  return `ban by policy ${bucket}`;
}

/** Name in the record in place of a policy, if a bound refuses. */
export function boundName(name: BoundName): string {
  return `bound ${name}`;
}

/** Returns all names that records can have in place of a policy. */
export function namesBesidePolicies(buckets: readonly string[]): string[] {
  const rows: readonly Reason[] = Object.values(REASONS);
  const names = rows.flatMap(({ name }) => (name === undefined ? [] : [name]));
  return [...names, ...BOUND_NAMES.map(boundName), ...buckets.map(banName)];
}

function unavailableWhy(policy: string): string {
  return `The store was unavailable, and ${policy} has onStoreFailure: deny. The client got 503.`;
}

function listText(what: string, { reason }: Pick<ListEntry, 'reason'>): string {
  return `The operator has ${what}${reason === null ? '.' : `: ${reason}`}`;
}

function listBriefly({ policy }: PartialRecord): string {
  return `The list deny of the policy file refused the request (${policy}).`;
}

function shareText(whose: BoundRefusal, bound: BoundName): string {
  return `this ${whose} has too many ${BOUNDS[bound].held}; try again when some have ended`;
}

function boundWhy(whose: string, record: DecisionRecord): string[] {
  const { limit, used } = record;
  return [
    `A bound of the gateway was reached: ${whose} may hold ${limit} (${boundOf(record)}), and ${used} were held.`,
  ];
}

function boundBriefly({ policy }: PartialRecord): string {
  return `A bound of the gateway was reached (${policy}).`;
}

function boundOf({ policy }: DecisionRecord): BoundName | null {
  return BOUND_NAMES.find((name) => policy === boundName(name)) ?? null;
}

function variableOf(record: DecisionRecord): string {
  const bound = boundOf(record);
  return bound === null ? 'the setting of this bound' : BOUNDS[bound].variable;
}
