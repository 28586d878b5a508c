/** The keys that limit a policy to some requests of its route: `unless`, `hosts`, `userAgent`, `query` and `except`. */
import {
  type CredentialIdentifier,
  type Identifier,
  needsProof,
  partsOf,
} from '#gateway/identity/identifier.ts';
import { hasParameter } from '#gateway/identity/pairs.ts';
import type { Condition } from '#gateway/policy/condition.ts';
import { readEach } from '#gateway/policy/problems.ts';
import { coveredBy, parseRoute, readHosts } from '#gateway/policy/route.ts';
import { RouteTree } from '#gateway/policy/route-tree.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';
import { policyKey, type RowPlace } from './key.ts';
import { programName } from './named-clients.ts';
import { areCounted } from './other-limits.ts';
import { hostList, route as routeText, some, text } from './schema-parts.ts';

const see = '#conditions';

export const unless = policyKey({
  schema: text('the name of an identifier: requests with a proven credential of it are not counted'),
  without: 'none',
  see,
  read(name, { identifier, identifierNamed, report }) {
    const other = name === undefined ? null : identifierNamed(name, 'unless');
    if (other === null || identifier === null) return other;
    if (other.kind !== 'credential' && other.kind !== 'token')
      report(
        [],
        `${name} is no credential`,
        'name an identifier with a header, bearer token, cookie, query parameter or jwt',
      );
    else if (partsOf(identifier).includes(other))
      report([], `this policy counts ${name} itself, so it would never apply`, 'name another identifier');
    else if (needsProof(identifier))
      report(
        [],
        `${identifier.name} has to be proven too`,
        'write unless on a policy by address, everyone, a field of the body or a token',
      );
    return other;
  },
  counted: ({ unless }) => unless?.name,
  /** Warns if nothing counts a key once it is proven. An application proves also invented ones where it checks none. */
  warn(policy, { policies }) {
    const { unless, count } = policy;
    // Clients cannot invent signed tokens.
    if (unless?.kind !== 'credential') return null;
    const counting = policies.filter(
      (other) =>
        countsEach(other.identifier, unless) &&
        other.distinct === null &&
        (other.count === 'request' || other.count === count),
    );
    if (areCounted(policy, counting)) return null;
    return [
      `no policy counts a proven ${unless.name} on this route, and an application that answers 200 to an invented one proves it`,
      `add a policy by ${unless.name}`,
    ];
  },
  explain: ({ unless }) => (unless === null ? null : `not counted once its ${unless.name} is proven`),
});

/** Whether a policy by this identifier counts each request that presents the key, by the key or by another identifier. */
function countsEach(identifier: Identifier, key: CredentialIdentifier): boolean {
  if (identifier.kind === 'first') return identifier.parts.some((part) => countsEach(part, key));
  return identifier === key || identifier.kind === 'address';
}

export const hosts = condition({
  schema: hostList(': only their requests are counted'),
  see: '#hosts',
  unmet: 'its host is none of',
  read(texts, { report }) {
    const names = readHosts(texts, report);
    return { holds: ({ host }) => names.has(host) };
  },
});

export const userAgent = condition({
  schema: some(
    { type: 'string' },
    100,
    'a list of 1 to 100 programs such as GPTBot: only their requests are counted',
  ),
  unmet: 'its User-Agent names none of',
  read(texts, { report }) {
    const wanted = new Set(readEach(texts, report, programName));
    return { holds: ({ rawHeaders }) => userAgentWords(rawHeaders).some((word) => wanted.has(word)) };
  },
});

export const query = condition({
  schema: some(
    {
      type: 'string',
      pattern: '^[A-Za-z0-9._~[\\]-]{1,100}$',
      description: 'the name of a query parameter, such as page',
    },
    16,
    'a list of 1 to 16 query parameters such as page: only requests with one of them are counted',
  ),
  unmet: 'its query has none of',
  read: (names) => ({ holds: ({ target }) => names.some((name) => hasParameter(target, name)) }),
});

export const except = condition({
  schema: some(
    routeText('METHODS PATH, such as POST /v1/login'),
    100,
    'a list of 1 to 100 routes that this policy does not count',
  ),
  without: 'none',
  unmet: 'except has',
  read(texts, { route, ignoreCase, report }) {
    const routes = readEach(texts, report, (text) => parseRoute(text, ignoreCase));
    if (route !== null && coveredBy(route, routes).length > 0)
      report([], 'nothing is left of the route of this policy', 'name smaller routes, or remove the policy');
    const tree = new RouteTree(
      routes.map((one) => [one, one]),
      ignoreCase,
    );
    // If servers read the path differently, it has to be on the list in each reading.
    return { holds: ({ method, paths }) => paths.some((path) => tree.find(method, path).length === 0) };
  },
});

interface TextList {
  readonly type: 'array';
  readonly items: { readonly type: 'string' };
  readonly description: string;
}

interface Grammar<S> {
  readonly schema: S;
  readonly without?: string;
  readonly see?: string;
  /** Why a policy does not apply, in front of the texts. */
  readonly unmet: string;
  read(texts: readonly string[], place: RowPlace): Pick<Condition, 'holds'>;
}

/** A condition is a list of texts. Its key reads them, and says when a request meets them. */
function condition<const S extends TextList>({ unmet, read, without = 'all', ...row }: Grammar<S>) {
  return policyKey<S, undefined, Condition | null>({
    see,
    ...row,
    without,
    read(written, place) {
      const texts: readonly string[] | undefined = written;
      return texts === undefined ? null : { unmet: `${unmet}: ${texts.join(', ')}`, ...read(texts, place) };
    },
  });
}
