/** The limits that the edge enforces in front of the survey API, row by row: the contents of `policies.yaml`. */
export interface EdgeRow {
  readonly methods: readonly string[];
  /** Has `{name}` for a segment, and `/*` for everything below. */
  readonly path: string;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly identifier: 'ip' | 'api-key';
}

const ALL = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const HOUR = 3600;
const MINUTE = 60;

const row = (
  methods: string | readonly string[],
  path: string,
  limit: number,
  windowSeconds: number,
  identifier: EdgeRow['identifier'],
): EdgeRow => ({
  methods: typeof methods === 'string' ? [methods] : methods,
  path,
  limit,
  windowSeconds,
  identifier,
});

export const EDGE_TABLE: readonly EdgeRow[] = [
  row('POST', '/api/auth/callback/credentials', 40, HOUR, 'ip'),
  row('POST', '/api/auth/callback/token', 10, HOUR, 'ip'),
  row(ALL, '/api/v1/management/*', 100, MINUTE, 'api-key'),
  row('POST', '/api/v1/management/storage', 5, MINUTE, 'api-key'),
  row(ALL, '/api/v1/webhooks/*', 100, MINUTE, 'api-key'),
  row('GET', '/api/v1/client/{workspaceId}/environment', 100, MINUTE, 'ip'),
  row('POST', '/api/v1/client/{workspaceId}/responses', 100, MINUTE, 'ip'),
  row('PUT', '/api/v1/client/{workspaceId}/responses/{responseId}', 100, MINUTE, 'ip'),
  row('POST', '/api/v1/client/{workspaceId}/displays', 100, MINUTE, 'ip'),
  row('POST', '/api/v1/client/{workspaceId}/user', 100, MINUTE, 'ip'),
  row('POST', '/api/v1/client/{workspaceId}/storage', 5, MINUTE, 'ip'),
  row('POST', '/api/v2/client/{workspaceId}/responses', 100, MINUTE, 'ip'),
  row('PUT', '/api/v2/client/{workspaceId}/responses/{responseId}', 100, MINUTE, 'ip'),
  row('POST', '/api/v2/client/{workspaceId}/displays', 100, MINUTE, 'ip'),
  row('POST', '/api/v2/client/{workspaceId}/storage', 5, MINUTE, 'ip'),
  row('DELETE', '/storage/{workspaceId}/public/{fileName}', 5, MINUTE, 'api-key'),
  row('DELETE', '/storage/{workspaceId}/private/{fileName}', 5, MINUTE, 'api-key'),
];

/** Returns a path that the row covers. */
export function examplePath({ path }: EdgeRow): string {
  return path.replace('/*', '/surveys').replaceAll(/\{[A-Za-z]+\}/g, 'abc123');
}
