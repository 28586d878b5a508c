/**
 * Counters in the memory of the parent, for the workers of one API without REDIS_URL. The parent counts for all
 * workers, so a limit holds however many there are, and outlives a worker that dies.
 *
 * All uses of one event-loop tick travel in one message each way.
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
export interface UsesMessage {
  readonly kind: 'uses';
  readonly id: number;
  readonly uses: readonly Use[];
}

/** A message to the worker, with an entry for each of its uses. */
export interface CountsMessage {
  readonly kind: 'counts';
  readonly id: number;
  readonly counts: readonly (Count | null)[];
}

export interface ParentChannel {
  /** @throws if the parent has ended */
  send(message: UsesMessage): void;
  onMessage(listener: (message: CountsMessage) => void): void;
  isConnected(): boolean;
}

/** Counters in a worker, which asks the parent. */
export function createParentCounters(
  channel: ParentChannel,
  timeoutMs: Millis = ANSWER_TIMEOUT_MS,
): Counters {
  const waiting = new Map<number, (counts: CountsMessage['counts']) => void>();
  let turn: { readonly uses: Use[]; readonly answer: Promise<CountsMessage['counts']> } | null = null;
  let id = 0;
  channel.onMessage((message) => {
    if (message.kind === 'counts') waiting.get(message.id)?.(message.counts);
  });

  const askAfterTurn = async (uses: readonly Use[]): Promise<CountsMessage['counts']> => {
    await new Promise((resolve) => setImmediate(resolve));
    turn = null;
    id += 1;
    const question = { kind: 'uses', id, uses } as const;
    const answer = new Promise<CountsMessage['counts']>((resolve) => waiting.set(question.id, resolve));
    try {
      channel.send(question);
      return await within(timeoutMs, answer);
    } catch (error) {
      throw new CountersUnavailable(error);
    } finally {
      waiting.delete(question.id);
    }
  };
  const ask = async (use: Use): Promise<Count | null> => {
    if (turn === null) {
      const uses: Use[] = [];
      turn = { uses, answer: askAfterTurn(uses) };
    }
    const place = turn.uses.push(use) - 1;
    return (await turn.answer)[place] ?? null;
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
export async function countFor(counters: Counters, { id, uses }: UsesMessage): Promise<CountsMessage> {
  const counts: (Count | null)[] = [];
  for (const { name, key, windowSeconds } of uses) {
    if (windowSeconds === null) {
      await counters.giveBack(name, key);
      counts.push(null);
    } else counts.push(await counters.use(name, key, windowSeconds));
  }
  return { kind: 'counts', id, counts };
}
