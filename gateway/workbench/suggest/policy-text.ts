/** Writes suggestions as a policy file in shadow mode, so that it denies nobody before it is reviewed. */

import { parseRoute } from '#gateway/policy/route.ts';
import { count, windowText } from '#gateway/workbench/number-text.ts';
import { LIMIT_MIN } from './candidates.ts';
import { ADDRESS } from './senders.ts';
import type { SuggestedRoute, Suggestions } from './suggest.ts';

const NAME_MAX = 64;
/** Characters that must be escaped in a literal of a route. */
const NOT_LITERAL = /[^A-Za-z0-9\-_~!$&'()+,=:@.%]/g;

/** @param keyHeader name of the header that presents keys */
export function policyText(suggestions: Suggestions, keyHeader: string): string {
  const { routes, from, to, requests, windowSeconds } = suggestions;
  const names = new Set<string>();
  const identifiers = [...new Set(routes.map(({ identifier }) => identifier))].sort();
  const rows = routes.flatMap((route) => {
    const text = routeText(route.route);
    return text === null ? [] : [row(route, text, nameOf(route, names), windowSeconds)];
  });
  return `# Suggested from ${count(requests)} requests between ${from} and ${to}. Each limit is twice what 99 of 100
# windows need, rounded up, and at least ${LIMIT_MIN}. Shadow mode counts and denies nobody: look at the figures, then remove it.
version: 1
identifiers:
${identifiers.map((name) => identifier(name, keyHeader)).join('\n') || `  ${ADDRESS}: { source: client-address }`}
exclude:
  - OPTIONS *
policies:${rows.length === 0 ? ' []' : ''}
${rows.join('')}`;
}

function identifier(name: string, keyHeader: string): string {
  return name === ADDRESS
    ? `  ${name}: { source: client-address }`
    : `  ${name}: { source: [{ header: ${keyHeader} }] }`;
}

function row(
  { identities, p50, p95, p99, max, identifier: by, suggested }: SuggestedRoute,
  route: string,
  name: string,
  windowSeconds: number,
): string {
  return `  # Requests of a client in a window: p50 ${count(p50)}, p95 ${count(p95)}, p99 ${count(p99)}, max ${count(max)}. Denies ${count(suggested.identitiesDenied)} of ${count(identities)} clients.
  - name: ${name}
    route: "${route}"
    identifier: ${by}
    limit: ${suggested.limit}
    window: ${windowText(windowSeconds)}
    mode: shadow
`;
}

/** @returns null for a route that a policy file cannot express */
function routeText(route: string): string | null {
  const [method = '', path = ''] = route.split(' ');
  const segments = path
    .split('/')
    .map((segment) => (/^\{(?:id|rest\*)\}$/.test(segment) ? segment : literal(segment)));
  const text = `${method} ${segments.join('/')}`;
  try {
    parseRoute(text);
    return text;
  } catch {
    return null;
  }
}

function literal(segment: string): string {
  return segment
    .replace(NOT_LITERAL, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
    .replace(/^:/, '%3A');
}

/** Returns a unique name from the method and the words of the path. */
function nameOf({ route, identifier: by }: SuggestedRoute, taken: Set<string>): string {
  const words = route
    .toLowerCase()
    .replace(/\{(\w+)\*?\}/g, '$1')
    .match(/[a-z0-9]+/g);
  const base = [...(words ?? ['route']), ...(by === ADDRESS ? [] : [by])].join('-').slice(0, NAME_MAX - 4);
  let name = base.replace(/^[^a-z]+|-+$/g, '') || 'route';
  const first = name;
  for (let i = 2; taken.has(name); i++) name = `${first}-${i}`;
  taken.add(name);
  return name;
}
