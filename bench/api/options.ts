/** The command line of the API's bench: every mistake is said, nothing is ignored. */
import { parseArgs } from 'node:util';

export const DATABASES = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof DATABASES)[number];

export const PARTS = ['create', 'state', 'list', 'export', 'webhooks', 'others', 'load'] as const;
export type Part = (typeof PARTS)[number];

export interface Options {
  readonly databases: readonly DatabaseKind[];
  /** Numbers of responses, ascending. */
  readonly rows: readonly number[];
  readonly only: readonly Part[];
  /** Of one visit under load. */
  readonly seconds: number;
  /** In each of which every target under load is visited once. */
  readonly rounds: number;
  /** Processes that serve, of the API and of what it is compared with. */
  readonly workers: number;
}

export class UsageError extends Error {}

const ROWS_MIN = 10_000;
const ROWS_MAX = 10_000_000;

export const USAGE = `npm run bench:api -- [options]

What requests to the API cost, on databases of its own that are gone at the end:
  --database NAMES    ${DATABASES.join(', ')} (default: both)
  --rows NUMBERS      responses that there are, such as 10k,1m,10m (default 10k,1m)
  --only PARTS        ${PARTS.join(', ')} (default: all)
                      load: create and state from many clients at once, beside the least that each could cost
  --seconds N         of one visit under load (default 4)
  --rounds N          of visits under load (default 3)
  --workers N         processes that serve (default 2)
`;

/** @returns null: help is asked for @throws UsageError */
export function readOptions(argv: readonly string[]): Options | null {
  const text = { type: 'string' } as const;
  let values: ReturnType<typeof parse>;
  try {
    values = parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  if (values.help === true) return null;
  const rows = (values.rows ?? '10k,1m').split(',').map(rowsIn);
  return {
    databases: known('database', values.database, DATABASES),
    rows: [...new Set(rows)].toSorted((a, b) => a - b),
    only: known('only', values.only, PARTS),
    seconds: integer('seconds', values.seconds, 4, 60),
    rounds: integer('rounds', values.rounds, 3, 20),
    workers: integer('workers', values.workers, 2, 16),
  };

  function parse() {
    return parseArgs({
      args: [...argv],
      options: {
        ...{ database: text, rows: text, only: text, seconds: text, rounds: text, workers: text },
        help: { type: 'boolean' },
      },
    }).values;
  }
}

function rowsIn(text: string): number {
  const [, digits, unit = ''] = /^(\d{1,8})([km]?)$/.exec(text.trim()) ?? [];
  const rows = Number(digits) * (unit === 'k' ? 1_000 : unit === 'm' ? 1_000_000 : 1);
  if (rows >= ROWS_MIN && rows <= ROWS_MAX) return rows;
  throw new UsageError(`--rows has "${text}"; give numbers from 10k to 10m`);
}

function integer(name: string, text: string | undefined, fallback: number, max: number): number {
  if (text === undefined) return fallback;
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= max) return value;
  throw new UsageError(`--${name} is "${text}"; it must be a whole number from 1 to ${max}`);
}

function known<Name extends string>(
  option: string,
  text: string | undefined,
  names: readonly Name[],
): readonly Name[] {
  if (text === undefined) return names;
  const asked = text.split(',').map((part) => part.trim());
  const unknown = asked.filter((part) => !names.some((name) => name === part));
  if (unknown.length > 0) {
    throw new UsageError(`--${option} does not know ${unknown.join(', ')}; it knows ${names.join(', ')}`);
  }
  return names.filter((name) => asked.includes(name));
}
