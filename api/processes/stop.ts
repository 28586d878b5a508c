/**
 * Ends the process in time, even if something hangs. Interrupted work is durable: it is in a table, leased or still
 * due.
 */
import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Millis } from '#shared/clock.ts';

export interface StopStep {
  /** Name of the step for the log, if it does not end in time. */
  readonly name: string;
  stop(): Promise<void> | void;
}

/**
 * Runs the first steps in parallel, and then the others in order.
 *
 * @param onError called when a step fails; the other steps continue
 * @returns the names of the steps that had not ended after `timeoutMs`
 */
export async function stopWithin(
  timeoutMs: Millis,
  { first, after }: { readonly first: readonly StopStep[]; readonly after: readonly StopStep[] },
  onError: (name: string, error: unknown) => void,
): Promise<readonly string[]> {
  const open = new Set([...first, ...after].map(({ name }) => name));
  const run = async ({ name, stop }: StopStep): Promise<void> => {
    try {
      await stop();
    } catch (error) {
      onError(name, error);
    }
    open.delete(name);
  };
  const all = async (): Promise<void> => {
    await Promise.all(first.map(run));
    for (const step of after) await run(step);
  };
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  await Promise.race([all(), timeout]);
  clearTimeout(timer);
  return [...open];
}

/** Each pending connection takes one turn of the event loop, and node:http lets 511 connections wait. */
const TURNS_MAX = 512;

/**
 * Accepts the connections and reads the requests that the kernel holds, because closing the server would drop them.
 * Ends when no connection or request arrives for two turns of the event loop.
 */
export async function readArrived(server: Server): Promise<void> {
  let arrived = 0;
  const count = (): void => {
    arrived += 1;
  };
  server.on('connection', count).on('request', count);
  for (let turns = 0, before = -1; before < arrived && turns < TURNS_MAX; turns += 2) {
    before = arrived;
    // Wait twice, because the first wait may only end the current turn, in which nothing is read.
    await nextTurn();
    await nextTurn();
  }
  server.off('connection', count).off('request', count);
}
