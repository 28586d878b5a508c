/** Ending the process in time, whatever hangs. What is cut off is durable: it is leased, or still to be done, in a table. */
import type { Millis } from '#shared/clock.ts';

interface StopStep {
  /** Said in the log when it does not end in time. */
  readonly name: string;
  stop(): Promise<void> | void;
}

/**
 * Stops all that takes or does work side by side, then, in order, what they needed.
 *
 * @param onError a step failed, which holds up no other
 * @returns the names of what had not ended after `timeoutMs`; nobody waits for it any longer
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
