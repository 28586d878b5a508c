/** The shipped table, read as the model reads it: a request that fits each policy, and all policies which that request is charged to. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../tools.ts';

export interface LimitedRoute {
  readonly policy: string;
  readonly method: string;
  readonly path: string;
  readonly identifier: 'ip' | 'api-key';
  readonly limit: number;
  readonly windowSeconds: number;
  /** The names of all policies that count it. */
  readonly charged: readonly string[];
}

interface Row {
  readonly name: string;
  readonly route: string;
  readonly identifier: 'ip' | 'api-key';
  readonly limit: number;
  readonly window: string;
}

const SECONDS: Readonly<Record<string, number>> = { '1m': 60, '1h': 3600 };

export function limitedRoutes(): readonly LimitedRoute[] {
  const { policies } = parse(readFileSync(join(ROOT, 'policies.yaml'), 'utf8')) as { policies: Row[] };
  return policies.map((row) => {
    const [methods = '', pattern = ''] = row.route.split(' ');
    const path = exampleOf(pattern);
    const method = methods.split(',')[0] ?? 'GET';
    const windowSeconds = SECONDS[row.window];
    if (windowSeconds === undefined) throw new Error(`the soak does not know the window ${row.window}`);
    const charged = policies.filter((other) => covers(other, method, path)).map(({ name }) => name);
    return {
      policy: row.name,
      method,
      path,
      identifier: row.identifier,
      limit: row.limit,
      windowSeconds,
      charged,
    };
  });
}

function exampleOf(pattern: string): string {
  return pattern
    .replace('/*', '/surveys')
    .replace(/\{[a-zA-Z]+\*\}/, 'folder/file.txt')
    .replaceAll(/\{[a-zA-Z]+\}/g, 'soak');
}

/** The patterns of the shipped table only: literal segments, a parameter, the rest of a path. */
function covers({ route }: Row, method: string, path: string): boolean {
  const [methods = '', pattern = ''] = route.split(' ');
  const source = pattern
    .replace('/*', '(?:/.*)?')
    .replace(/\{[a-zA-Z]+\*\}/, '.+')
    .replaceAll(/\{[a-zA-Z]+\}/g, '[^/]+');
  return methods.split(',').includes(method) && new RegExp(`^${source}$`).test(path);
}
