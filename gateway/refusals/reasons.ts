/**
 * Every reason for which the gateway answers a request itself, in one table. Its reply, its line in the access log, its
 * metric, its record and the words of `floodgate why` are made from its row. To add a reason, add a row.
 */
import { BOUND_NAMES, BOUNDS, type BoundName } from '#gateway/bounds/bound-names.ts';
import { HEADER_ADVICE, sizeText } from '#gateway/http/header-size.ts';
import type { Outcome } from '#gateway/observe/metrics/metrics.ts';
import { GROUPS } from '#gateway/policy/groups.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { DENIED_SECONDS, type ErrorCode, RETRY_SECONDS } from './codes.ts';
import type { DecisionRecord } from './decision-record.ts';
import { limitAdvice, limitText, limitWhy } from './limit-texts.ts';
import type { Of, Reason, RecordedReason, Refusal } from './refusal.ts';
import { countedBy, ofPolicy, withoutPolicy } from './refusal.ts';

const RETRY_MS: Millis = RETRY_SECONDS * 1000;

export const REASONS = {
  policyLimit: limitReason(null),
  storeUnavailable: {
    code: 'gateway_store_unavailable',
    logged: 'unavailable',
    decision: 'unavailable',
    told: ({ bucket }) => ({
      text: 'limits cannot be checked at the moment; try again in a second',
      policies: bucket === null ? [] : [bucket.policy.name],
    }),
    record({ bucket }) {
      if (bucket === null) return null;
      return {
        ...ofPolicy(bucket),
        decision: 'unavailable',
        violated: [bucket.policy.name],
        limit: bucket.capacity,
        used: null,
        resetMs: RETRY_MS,
        isLocal: true,
        fromMemory: false,
      };
    },
    why: ({ policy }) => [
      `The store was unavailable, and policy ${policy} has onStoreFailure: deny. The client got 503.`,
    ],
    advice: ({ file, line }) =>
      `To let requests pass while the store is away, set onStoreFailure: local in ${file}:${line}.`,
  } satisfies RecordedReason<Of<'store'>>,
  /** `name` is for bans by operators. */
  ban: {
    code: 'gateway_banned',
    logged: 'banned',
    decision: 'banned',
    name: 'operator ban',
    told: ({ leftMs }) => ({
      text: 'The operator has blocked this client for a while. Wait for the seconds in Retry-After.',
      retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
    }),
    record: ({ identity, leftMs, policy }) => ({
      ...withoutPolicy(policy === null ? 'operator ban' : `ban by policy ${policy}`, identity),
      decision: 'banned',
      resetMs: leftMs,
    }),
    why: ({ policy }) => [
      policy === 'operator ban' ? 'An operator has banned this client.' : `This client has a ${policy}.`,
    ],
    advice: ({ identity }) =>
      `To see the reason, run floodgate inspect ${identity}; to let it in again, floodgate unban ${identity}.`,
  } satisfies RecordedReason<Of<'banned'>>,
  listedClient: listReason('deny list', 'client', 'blocked', 'let it in'),
  closedRoute: listReason('closed route', 'route', 'closed', 'open the route'),
  bound: boundReason({
    code: 'gateway_overloaded',
    counted: 'all clients',
    held: (things) => `there are too many ${things}; try again later`,
    may: 'all clients together may hold',
    advice: (variable) => `To let more be held at once, raise ${variable}.`,
  }),
  clientShare: boundReason({
    code: 'gateway_client_busy',
    counted: 'client address',
    held: (things) => `this client has too many ${things}; try again when some have ended`,
    may: 'one client address may hold',
    advice: () =>
      'To let one address hold more, set a larger GATEWAY_CLIENT_SHARE; if the address is a proxy of yours, name it in GATEWAY_TRUSTED_PROXIES.',
  }),
  networkShare: boundReason({
    code: 'gateway_client_busy',
    counted: 'IPv6 network',
    held: (things) => `this network has too many ${things}; try again when some have ended`,
    may: 'the clients of one IPv6 network may hold',
    advice: (variable) =>
      `An IPv6 /48 has a quarter of what all may hold. To let it hold more, raise ${variable}.`,
  }),
  protect: {
    code: 'gateway_overloaded',
    decision: 'busy',
    name: 'protect',
    told: ({ priority }) => ({
      text: 'the application is overloaded; try again later',
      extra: { details: { priority } },
    }),
    record: ({ bound, priority, as }, client) => ({
      ...withoutPolicy('protect', client.identity()),
      decision: 'busy',
      identifier: `priority ${priority}${as === undefined ? '' : ` as a ${as}`}`,
      algorithm: 'concurrency',
      limit: bound.limit,
      used: bound.held,
      resetMs: RETRY_MS,
    }),
    why: ({ limit, used, identifier }) => [
      `The application replied slowly, so at most ${limit} requests were in progress there (protect), and ${used} were. This one had ${identifier} and waited too long.`,
    ],
    advice: ({ file }) =>
      `To let such requests go first, set priority: high in their policy in ${file}; to refuse none, set protect: shadow.`,
  } satisfies RecordedReason<Of<'overloaded'>>,

  // Faults of a request. If it was not counted before, it is counted and logged as `malformed`.
  malformed: {
    code: 'gateway_bad_request',
    logged: 'malformed',
    told: ({ reason }) => ({ text: reason }),
  } satisfies Reason<Of<'malformed'>>,
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
  upstreamUnavailable: {
    code: 'gateway_upstream_unavailable',
    told: ({ reason }) => ({ text: reason }),
  } satisfies Reason<Of<'unavailable'>>,
  upstreamTimeout: {
    code: 'gateway_upstream_timeout',
    told: () => ({ text: 'the upstream did not answer in time' }),
  } satisfies Reason<Of<'timeout'>>,
} as const;

/** The limits of policies for all clients of a group together. `counted` is their identifier. */
export const GROUP_REASONS: readonly RecordedReason<Of<'limit'>>[] = GROUPS.map(limitReason);

const BY_BOUND = { client: REASONS.clientShare, network: REASONS.networkShare, total: REASONS.bound };

type ReasonOf<K extends Refusal['kind'], T = Of<K>> = (refusal: T) => Reason<T>;

const BY_KIND: { readonly [K in Refusal['kind']]: ReasonOf<K> } = {
  malformed: () => REASONS.malformed,
  banned: () => REASONS.ban,
  listed: ({ entry }) => (entry.names === 'route' ? REASONS.closedRoute : REASONS.listedClient),
  limit: ({ violated: [first] }) => limitReasonOf(first?.policy),
  store: () => REASONS.storeUnavailable,
  bound: ({ refusal }) => BY_BOUND[refusal],
  overloaded: () => REASONS.protect,
  unavailable: () => REASONS.upstreamUnavailable,
  timeout: () => REASONS.upstreamTimeout,
};

function rowOf<K extends Refusal['kind']>({ kind }: { readonly kind: K }): ReasonOf<K> {
  return BY_KIND[kind];
}

export function reasonOf(refusal: Refusal): Reason<Refusal> {
  return rowOf(refusal)(refusal);
}

/** Returns the label of `floodgate_requests_total`. */
export function outcomeOf({ logged = 'undecided' }: Pick<Reason<never>, 'logged'>): Outcome {
  if (logged === 'deny') return 'denied';
  return logged === 'allow' ? 'allowed' : logged;
}

/** The first row of each decision is for records that name none of the others. */
const RECORDED: readonly RecordedReason<never>[] = [...Object.values(REASONS), ...GROUP_REASONS].filter(
  (row) => 'decision' in row,
);

/** Returns the reason of a recorded refusal. */
export function reasonOfRecord({
  decision,
  policy,
  identifier,
}: Pick<DecisionRecord, 'decision' | 'policy' | 'identifier'>): RecordedReason<never> {
  const rows = RECORDED.filter((row) => row.decision === decision);
  const isNamed = ({ name = '', counted = '' }) => name === policy || counted === identifier;
  return rows.find(isNamed) ?? rows[0] ?? REASONS.policyLimit;
}

/** Returns the reason why a policy denies. @param policy undefined if it is not known */
function limitReasonOf(policy: Policy | undefined): RecordedReason<Of<'limit'>> {
  const by = policy === undefined ? null : countedBy(policy);
  return GROUP_REASONS.find(({ counted }) => counted === by) ?? REASONS.policyLimit;
}

/** @param words of the group whose limit it is; null for a limit of each client */
function limitReason(words: (typeof GROUPS)[number] | null): RecordedReason<Of<'limit'>> {
  return {
    code: words?.code ?? 'gateway_rate_limited',
    logged: 'deny',
    decision: 'deny',
    counted: words?.together,
    told({ violated, retryAfter }) {
      const policies = [...new Set(violated.map(({ policy }) => policy.name))];
      const canNeverPass = violated.some((one) => one.canNeverPass);
      return {
        text: limitText(words, violated[0]),
        ...(canNeverPass ? {} : { retryAfter }),
        limits: violated,
        policies,
        extra: { error: { code: 429, message: 'Too Many Requests' }, 'violated-policies': policies },
      };
    },
    record({ violated, bucket, by }) {
      const [first] = violated;
      return {
        ...ofPolicy(bucket),
        decision: 'deny',
        violated: violated.map(({ policy }) => policy.name),
        limit: first?.share ?? bucket.capacity,
        used: first?.used ?? null,
        resetMs: first?.resetMs ?? 0,
        isLocal: by === 'share',
        fromMemory: by === 'memory',
      };
    },
    why: (record) => limitWhy(words, record),
    advice: (record) => limitAdvice(words, record),
  };
}

/** The list `deny` names the client, or closes the route to everybody. Its entry may ask for `gateway_forbidden`. */
function listReason(name: string, what: 'client' | 'route', did: string, undo: string) {
  return {
    code: 'gateway_denied',
    logged: 'deny',
    decision: 'listed',
    name,
    // Survey widgets retry only a 429.
    told: ({ entry: { status, reason } }, isClientRoute) => ({
      text: `The operator has ${did} this ${what}${reason === null ? '.' : `: ${reason}`}`,
      ...(status === 403 && !isClientRoute ? { code: 'gateway_forbidden' } : {}),
    }),
    record: ({ entry }, client) => ({
      ...withoutPolicy(name, client.identity()),
      decision: 'listed',
      line: entry.line,
      resetMs: DENIED_SECONDS * 1000,
      fromMemory: true,
    }),
    why: () => [`The list deny of the policy file names this ${what}.`],
    advice: ({ file, line }) => `To ${undo}, remove the entry in ${file}:${line}; it applies at once.`,
  } as const satisfies RecordedReason<Of<'listed'>>;
}

interface BoundWords {
  readonly code: ErrorCode;
  readonly counted: string;
  /** The message for the client. */
  readonly held: (things: string) => string;
  /** Tells operators whose share it is. */
  readonly may: string;
  readonly advice: (variable: string) => string;
}

function boundReason({ code, counted, held, may, advice }: BoundWords): RecordedReason<Of<'bound'>> {
  return {
    code,
    decision: 'busy',
    counted,
    told: ({ bound: { name }, refusal }) => ({
      text: held(BOUNDS[name].held),
      extra: { details: { bound: name, scope: refusal } },
    }),
    record({ bound, refusal, client: of }, client) {
      const holder = refusal === 'client' ? of : refusal === 'network' ? (of?.network ?? null) : null;
      return {
        ...withoutPolicy(boundName(bound.name), client.identity()),
        decision: 'busy',
        identifier: counted,
        algorithm: 'concurrency',
        limit: holder === null ? bound.total : bound.limitOf(refusal),
        used: holder === null ? bound.held : bound.heldBy(holder),
        resetMs: RETRY_MS,
      };
    },
    why: ({ policy, limit, used }) => [
      `A bound of the gateway was reached (${policy}): ${may} ${limit}, and ${used} were held.`,
    ],
    advice({ policy }) {
      const bound = BOUND_NAMES.find((name) => policy === boundName(name));
      return advice(bound === undefined ? 'the setting of this bound' : BOUNDS[bound].variable);
    },
  };
}

/** Name in the record in place of a policy, if a bound refuses. */
function boundName(name: BoundName): string {
  return `bound ${name}`;
}
