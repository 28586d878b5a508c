/**
 * The families of paths. A family decides the error envelope, whether a key is asked for before anything else, and
 * whether browsers of any origin may read the reply (contract errors.md §1, client-api.md §1).
 */

export type Envelope = 'A' | 'B' | 'C';

export interface Family {
  readonly name: 'client-v1' | 'client-v2' | 'management-v1' | 'v2' | 'v3' | 'other';
  readonly envelope: Envelope;
  /** A known credential comes first, also on paths that lead nowhere: strangers do not learn which paths exist. */
  readonly isAuthenticated: boolean;
  /** Called by browsers on other people's pages: CORS on every reply. */
  readonly isCrossOrigin: boolean;
}

interface Row {
  readonly prefixes: readonly string[];
  readonly family: Family;
}

const other: Family = { name: 'other', envelope: 'A', isAuthenticated: false, isCrossOrigin: false };

/** The first row whose prefix is the path or one of its parents decides. */
const rows: readonly Row[] = [
  {
    prefixes: ['/api/v1/client'],
    family: { name: 'client-v1', envelope: 'A', isAuthenticated: false, isCrossOrigin: true },
  },
  {
    prefixes: ['/api/v2/client'],
    family: { name: 'client-v2', envelope: 'A', isAuthenticated: false, isCrossOrigin: true },
  },
  {
    prefixes: [
      '/api/v1/management',
      '/api/v1/webhooks',
      '/api/v1/me',
      '/api/v1/surveys',
      '/api/v1/responses',
      '/api/v1/api-keys',
      '/api/v1/integrations',
      '/api/v1/license',
      '/api/v1/profile',
    ],
    family: { name: 'management-v1', envelope: 'A', isAuthenticated: true, isCrossOrigin: false },
  },
  {
    prefixes: ['/api/v2/health'],
    family: { name: 'v2', envelope: 'B', isAuthenticated: false, isCrossOrigin: false },
  },
  {
    prefixes: ['/api/v2'],
    family: { name: 'v2', envelope: 'B', isAuthenticated: true, isCrossOrigin: false },
  },
  {
    prefixes: ['/api/v3'],
    family: { name: 'v3', envelope: 'C', isAuthenticated: true, isCrossOrigin: false },
  },
];

/** @param target the request target: a path, perhaps with a query; it may be malformed */
export function familyOf(target: string): Family {
  const path = decoded(target.split(/[?#]/, 1)[0] ?? '');
  const isBelow = (prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);
  return rows.find(({ prefixes }) => prefixes.some(isBelow))?.family ?? other;
}

/** The router decodes percent-encodings before it matches, so the family must see the same path. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // Not decodable: such a target is refused with 400 in the envelope of its literal prefix.
    return path;
  }
}
