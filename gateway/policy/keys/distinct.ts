import { partsOf, type SimpleIdentifier, WHOLE_PATH } from '#gateway/identity/identifier.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Path, Report } from '#gateway/policy/problems.ts';
import { bodyIdentifier, credentialSource, SOURCES } from './identifier-sources.ts';
import { policyKey } from './key.ts';

export const distinct = policyKey({
  schema: {
    anyOf: [{ type: 'string' }, SOURCES.body, SOURCES.query, SOURCES.header],
    description:
      'the limit is a number of different values, not of requests: { body: FIELD }, { query: NAME }, { header: NAME }, path, path.NAME for a parameter of the route, or the name of an entry under identifiers',
  },
  without: 'each request counts',
  see: '#different-values',
  read(written, { identifier, identifierNamed, ignoreCase, report }): SimpleIdentifier | null {
    if (written === undefined) return null;
    const isName = typeof written === 'string' && written !== 'path';
    const value = isName ? identifierNamed(written, 'distinct') : partOf(written, ignoreCase);
    if (value === null || identifier === null) return value;
    if (value.kind === 'everyone')
      report([], 'everyone is always the same value', 'name a part of the request, such as { body: email }');
    // A client of `first` may present another part than this one.
    else if (identifier.kind !== 'first' && partsOf(identifier).some(({ name }) => name === value.name))
      report(
        [],
        `each client of ${identifier.name} has a single ${value.name}, so the limit is never reached`,
        'count the values of something else, or choose another identifier',
      );
    return value;
  },
  counted: ({ distinct }) => distinct?.name,
  explain: ({ distinct }) => (distinct === null ? null : `only each new ${distinct.name} counts`),
});

/** A part of the request that has no entry under `identifiers`. */
type Part = string | { body: string; required?: boolean } | { query: string } | { header: string };

function partOf(written: Part, ignoresCase: boolean): SimpleIdentifier {
  if (typeof written === 'string')
    return { name: written, kind: 'path', param: WHOLE_PATH, at: 0, takesRest: true, ignoresCase };
  if ('body' in written) return bodyIdentifier(`body.${written.body}`, written);
  const name = 'query' in written ? `query.${written.query}` : `header.${written.header.toLowerCase()}`;
  return { name, kind: 'credential', sources: [credentialSource(written)] };
}

/** The maximum of a limit of different values. Redis stores all of them, and gateways remember some. */
const DISTINCT_MAX = 1000;

/** @param at place of the limit */
export function checkValueLimit(limit: number, at: Path, report: Report): void {
  if (limit > DISTINCT_MAX)
    report(
      at,
      `distinct remembers at most ${DISTINCT_MAX} values of a client, not ${limit}`,
      `write at most ${DISTINCT_MAX}`,
    );
}

interface ValueLimit {
  readonly algorithm: Algorithm;
  readonly limit: number;
  readonly at: Path;
}

/** Checks a limit of different values, which are counted in windows, up to a maximum. */
export function checkValues({ algorithm, limit, at }: ValueLimit, report: Report): void {
  if (algorithm === 'fixed-window' || algorithm === 'calendar-window')
    checkValueLimit(limit, [...at, 'limit'], report);
  else
    report(
      [...at, algorithm === 'concurrency' ? algorithm : 'algorithm'],
      `distinct counts in fixed or calendar windows, so it cannot be combined with ${algorithm}`,
      'remove one of them',
      'key',
    );
}
