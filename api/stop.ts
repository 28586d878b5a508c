/**
 * Ends the process in time, even if something hangs. Interrupted work is durable: it is in a table, leased or still
 * due.
 */
import type { Millis } from '#shared/clock.ts';

interface StopStep {
  /** For the log, if the step does not end in time. */
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
