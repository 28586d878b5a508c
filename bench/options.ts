/** The command line: every mistake is said, nothing is ignored. */
import { parseArgs } from 'node:util';
import type { AbuseOptions } from './abuse/run.ts';
import { TARGETS } from './abuse/scenario.ts';
import { SCENARIOS as ATTACKS } from './abuse/scenarios.ts';
import { SCENARIOS } from './scenarios.ts';
import { PEERS } from './targets/all.ts';

export class UsageError extends Error {}

export interface BenchOptions {
  readonly only: readonly string[];
  /** null: all that a scenario has. */
  readonly peers: readonly string[] | null;
  readonly rounds: number;
  readonly seconds: number;
  readonly install: boolean;
}

export interface TargetOptions {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connections: number;
  readonly seconds: number;
  readonly requests: number;
  readonly rate: number | null;
}

export type Options =
  | { readonly kind: 'bench'; readonly bench: BenchOptions }
  | { readonly kind: 'abuse'; readonly abuse: AbuseOptions }
  | { readonly kind: 'target'; readonly target: TargetOptions }
  | { readonly kind: 'help' };

export const USAGE = `npm run bench -- [options]

Compares the gateway with its peers on this machine:
  --only NAMES        scenarios, separated by commas: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --peers NAMES       only these, besides floodgate: ${PEERS.map(({ name }) => name).join(', ')}
  --rounds N          rounds, in each of which every target is visited once (default 7, at least 5)
  --duration SECONDS  of one visit (default 3)
  --quick             5 rounds of 1 second
  --no-install        use only what is installed already

Attacks the gateway and its peers from one address, with a polite client beside it:
  --abuse
  --only NAMES        attacks, separated by commas: ${ATTACKS.map(({ name }) => name).join(', ')}
  --peers NAMES       only these, besides floodgate: nginx, haproxy
  --quick             2.5 seconds an attack instead of 5
  --no-install        use only what is installed already

Loads a deployment of yours, and nobody else's:
  --target URL        such as https://gateway.example:8080
  --path PATH         default: the URL's path
  --method METHOD     default GET
  --header 'N: V'     may be repeated
  --body TEXT
  --connections N     default 10, at most 1000
  --duration SECONDS  default 10, at most 600
  --requests N        stops after so many (default 10000, at most 1000000)
  --rate N            requests a second; default: as fast as the connections can
`;

const ONLY_BENCH = ['abuse', 'only', 'peers', 'rounds', 'quick', 'no-install'];
const ONLY_COMPARISON = ['rounds', 'duration'];
const ONLY_TARGET = ['path', 'method', 'header', 'body', 'connections', 'requests', 'rate'];

export function readOptions(argv: readonly string[]): Options {
  const values = parse(argv);
  if (values.help) return { kind: 'help' };
  if (values.abuse === true) return { kind: 'abuse', abuse: abuseOptions(values) };
  const foreign = Object.keys(values).filter((name) =>
    (values.target === undefined ? ONLY_TARGET : ONLY_BENCH).includes(name),
  );
  if (foreign.length > 0) {
    const mode = values.target === undefined ? 'needs --target' : 'does not go with --target';
    throw new UsageError(foreign.map((name) => `--${name} ${mode}`).join('; '));
  }
  if (values.target !== undefined) return { kind: 'target', target: targetOptions(values, values.target) };
  const quick = values.quick === true;
  return {
    kind: 'bench',
    bench: {
      only:
        known(
          'only',
          values.only,
          SCENARIOS.map(({ name }) => name),
        ) ?? SCENARIOS.map(({ name }) => name),
      peers: known('peers', values.peers, [...PEERS.map(({ name }) => name), 'direct']),
      rounds: integer('rounds', values.rounds, quick ? 5 : 7, 5, 1000),
      seconds: integer('duration', values.duration, quick ? 1 : 3, 1, 600),
      install: values['no-install'] !== true,
    },
  };
}

function abuseOptions(values: ReturnType<typeof parse>): AbuseOptions {
  const foreign = Object.keys(values).filter((name) =>
    [...ONLY_COMPARISON, ...ONLY_TARGET, 'target'].includes(name),
  );
  if (foreign.length > 0)
    throw new UsageError(foreign.map((name) => `--${name} does not go with --abuse`).join('; '));
  const names = ATTACKS.map(({ name }) => name);
  return {
    only: known('only', values.only, names) ?? names,
    peers: known('peers', values.peers, TARGETS),
    quick: values.quick === true,
    install: values['no-install'] !== true,
  };
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      args: [...argv],
      options: {
        ...{
          only: text,
          peers: text,
          rounds: text,
          duration: text,
          quick: flag,
          'no-install': flag,
          abuse: flag,
        },
        ...{ target: text, path: text, method: text, header: { ...text, multiple: true }, body: text },
        ...{ connections: text, requests: text, rate: text, help: flag },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function targetOptions(values: ReturnType<typeof parse>, target: string): TargetOptions {
  const url = URL.parse(target);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`--target is "${target}"; it must be an address such as http://127.0.0.1:8080`);
  if (values.path !== undefined && !values.path.startsWith('/'))
    throw new UsageError(`--path is "${values.path}"; it must begin with /`);
  const headers: Record<string, string> = {};
  for (const header of values.header ?? []) {
    const found = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(header);
    if (found === null) throw new UsageError(`--header is "${header}"; it must be 'Name: value'`);
    headers[found[1] ?? ''] = found[2] ?? '';
  }
  return {
    url: new URL(values.path ?? `${url.pathname}${url.search}`, url.origin),
    method: values.method ?? (values.body === undefined ? 'GET' : 'POST'),
    headers,
    body: values.body ?? '',
    connections: integer('connections', values.connections, 10, 1, 1000),
    seconds: integer('duration', values.duration, 10, 1, 600),
    requests: integer('requests', values.requests, 10_000, 1, 1_000_000),
    rate: values.rate === undefined ? null : integer('rate', values.rate, 1, 1, 100_000),
  };
}

function integer(name: string, text: string | undefined, fallback: number, min: number, max: number): number {
  if (text === undefined) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`--${name} is "${text}"; it must be a whole number from ${min} to ${max}`);
}

function known(name: string, text: string | undefined, names: readonly string[]): string[] | null {
  if (text === undefined) return null;
  const asked = text.split(',').map((part) => part.trim());
  const unknown = asked.filter((part) => !names.includes(part));
  if (unknown.length > 0)
    throw new UsageError(`--${name} does not know ${unknown.join(', ')}; it knows ${names.join(', ')}`);
  return asked;
}
