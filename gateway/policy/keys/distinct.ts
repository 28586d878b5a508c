import {
  type CredentialSource,
  partsOf,
  type SimpleIdentifier,
  WHOLE_PATH,
} from '#gateway/identity/identifier.ts';
import { BODY_FIELD, QUERY_PARAMETER } from './identifier-keys.ts';
import { policyKey } from './key.ts';
import { fieldName, only } from './schema-parts.ts';

export const distinct = policyKey({
  schema: {
    anyOf: [{ type: 'string' }, BODY_FIELD, only('query', QUERY_PARAMETER), only('header', fieldName)],
    description:
      'the limit is a number of different values, not of requests: { body: FIELD }, { query: NAME }, { header: NAME }, path, path.NAME for a parameter of the route, or the name of an entry under identifiers',
  },
  without: 'each request counts',
  more: 'See [Different values](#different-values)',
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
  restarts: (before, after) => (before.distinct === null) !== (after.distinct === null),
  explain: ({ distinct }) => (distinct === null ? null : `only each new ${distinct.name} counts`),
});

/** A part of the request that has no entry under `identifiers`. */
type Part = string | { body: string; required?: boolean } | { query: string } | { header: string };

function partOf(written: Part, ignoresCase: boolean): SimpleIdentifier {
  if (typeof written === 'string')
    return { name: written, kind: 'path', param: WHOLE_PATH, at: 0, takesRest: true, ignoresCase };
  if ('body' in written)
    return {
      name: `body.${written.body}`,
      kind: 'body',
      field: written.body,
      isRequired: written.required === true,
    };
  if ('query' in written)
    return credential(`query.${written.query}`, { kind: 'query', parameter: written.query });
  const header = written.header.toLowerCase();
  return credential(`header.${header}`, { kind: 'header', header });
}

function credential(name: string, source: CredentialSource): SimpleIdentifier {
  return { name, kind: 'credential', sources: [source] };
}
