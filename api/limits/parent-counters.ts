/**
 * Counters in the memory of the parent, for the workers of one API without REDIS_URL. The parent counts for all
 * workers, so a limit holds however many there are, and outlives a worker that dies.
 */
import type { Millis, Seconds } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Count, type Counters, CountersUnavailable } from './counters.ts';

/** Time limit for an answer. The parent does nothing else, so a parent that takes longer hangs or has ended. */
const ANSWER_TIMEOUT_MS: Millis = 1000;

interface Use {
  readonly name: string;
  readonly key: string;
  /** The length of the window; null to remove one use. */
  readonly windowSeconds: Seconds | null;
}

/** A message to the parent. */
export interface UseMessage extends Use {
  readonly kind: 'use';
  readonly id: number;
}

/** The answer to the worker. */
export interface CountMessage {
  readonly kind: 'count';
  readonly id: number;
  /** null after a use was removed. */
  readonly count: Count | null;
}

export interface ParentChannel {
  /** @throws if the parent has ended */
  send(message: UseMessage): void;
  onMessage(listener: (message: CountMessage) => void): void;
  isConnected(): boolean;
}

/** Counters in a worker, which asks the parent. */
export function createParentCounters(
  channel: ParentChannel,
  timeoutMs: Millis = ANSWER_TIMEOUT_MS,
): Counters {
  const waiting = new Map<number, (count: Count | null) => void>();
  let lastId = 0;
  channel.onMessage((message) => {
    if (message.kind === 'count') waiting.get(message.id)?.(message.count);
  });

  const ask = async (use: Use): Promise<Count | null> => {
    lastId += 1;
    const id = lastId;
    const answer = new Promise<Count | null>((resolve) => waiting.set(id, resolve));
    try {
      channel.send({ kind: 'use', id, ...use });
      return await within(timeoutMs, answer);
    } catch (error) {
      throw new CountersUnavailable(error);
    } finally {
      waiting.delete(id);
    }
  };

  return {
    async use(name, key, windowSeconds) {
      const count = await ask({ name, key, windowSeconds });
      if (count === null) throw new CountersUnavailable(new Error('the parent did not count'));
      return count;
    },
    async giveBack(name, key) {
      await ask({ name, key, windowSeconds: null });
    },
    isUp: async () => channel.isConnected(),
    close: async () => undefined,
  };
}

/** Counts in the parent for a worker. @param counters in the parent's memory */
export async function countFor(
  counters: Counters,
  { id, name, key, windowSeconds }: UseMessage,
): Promise<CountMessage> {
  if (windowSeconds !== null) {
    return { kind: 'count', id, count: await counters.use(name, key, windowSeconds) };
  }
  await counters.giveBack(name, key);
  return { kind: 'count', id, count: null };
}
