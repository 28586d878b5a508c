/** Parameters of a database address, such as `?synchronous=normal`. The drivers define the defaults. */
import type { Millis } from '#shared/clock.ts';

/**
 * When commits are flushed to disk. `full`: before they are acknowledged, so a power failure loses nothing. `normal`:
 * later; a crash of the process loses nothing, a crash of the machine the latest transactions.
 */
export type Synchronous = 'full' | 'normal';

export interface AddressSettings {
  readonly synchronous?: Synchronous;
  readonly poolSize?: number;
  readonly statementTimeoutMs?: Millis;
  /** How long a start waits for a server that does not answer yet. */
  readonly waitMs?: Millis;
}

/** @throws Error if a parameter is not in `known`, or is given twice */
export function refuseUnknown(given: URLSearchParams, known: readonly string[]): void {
  for (const name of given.keys()) {
    if (!known.includes(name))
      throw new Error(`${name} is not known here; this address may have ${known.join(', ')}`);
    if (given.getAll(name).length > 1) throw new Error(`${name} appears twice in the address`);
  }
}

/** @throws Error with the correct form */
export function addressSettings(given: URLSearchParams): AddressSettings {
  const synchronous = given.get('synchronous') ?? undefined;
  if (synchronous !== undefined && synchronous !== 'full' && synchronous !== 'normal')
    throw new Error('synchronous is full or normal');
  const poolSize = integerIn(given, 'pool_size', 1, 500);
  const statementTimeoutMs = integerIn(given, 'statement_timeout_ms', 100, 600_000);
  const waitSeconds = integerIn(given, 'wait_seconds', 0, 3600);
  return {
    ...(synchronous === undefined ? {} : { synchronous }),
    ...(poolSize === undefined ? {} : { poolSize }),
    ...(statementTimeoutMs === undefined ? {} : { statementTimeoutMs }),
    ...(waitSeconds === undefined ? {} : { waitMs: waitSeconds * 1000 }),
  };
}

function integerIn(given: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = given.get(name);
  if (text === null) return undefined;
  const number = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new Error(`${name} must be a whole number from ${min} to ${max}`);
}
