/** Limits the attempts that run in parallel in this process. */
import type { Millis } from '#shared/clock.ts';

const TOTAL_MAX = 128;
/** The share of one host: a quarter. So a host that hangs leaves the rest to others, however many webhooks it has. */
const PER_RECEIVER_MAX = 32;
/**
 * A receiver that usually takes longer than this is slow, because each attempt holds its place longer. So is one of which
 * nothing is known.
 */
const SLOW_MS: Millis = 1_000;
/** Number of attempts whose median decides this. */
const DURATIONS_MAX = 9;
/** Maximum number of receivers whose durations are known. The one that was attempted longest ago is dropped first. */
const RECEIVERS_MAX = 10_000;
/** The share of one organization: a quarter, however many workspaces and receivers it has. */
const PER_ORGANIZATION_MAX = 32;
/** The share of one workspace: an eighth. So a few workspaces whose receivers hang do not delay others. */
const PER_WORKSPACE_MAX = 16;
const PER_WEBHOOK_MAX = 4;
/** The share that slow receivers may take of each of these. The rest is kept for quick ones. */
const SLOW_SHARE = 3 / 4;
/** The one id of the count of all attempts. */
const ALL = '';

export interface Counted {
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  readonly receiver: string;
}

interface AttemptLimits {
  /** The number of attempts for this webhook that may begin now. */
  available(counted: Counted): number;
  /** @returns function that ends the attempt; call it once */
  acquire(counted: Counted): () => void;
  /** Records how long an attempt took. */
  record(receiver: string, duration: Millis): void;
  /** Whether no attempt may begin. */
  isExhausted(): boolean;
}

export function createAttemptLimits(): AttemptLimits {
  const byWebhook = createCounts(PER_WEBHOOK_MAX);
  const byReceiver = createCounts(PER_RECEIVER_MAX);
  const total = createCounts(TOTAL_MAX);
  const shared = [
    { all: total, idOf: () => ALL },
    { all: createCounts(PER_ORGANIZATION_MAX), idOf: ({ organizationId }: Counted) => organizationId },
    { all: createCounts(PER_WORKSPACE_MAX), idOf: ({ workspaceId }: Counted) => workspaceId },
  ].map((level) => ({ ...level, slow: createCounts(level.all.max * SLOW_SHARE) }));
  const durations = new Map<string, readonly Millis[]>();

  const medianOf = (receiver: string): Millis | null => {
    const sorted = (durations.get(receiver) ?? []).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? null;
  };
  const isSlow = (median: Millis | null): boolean => median === null || median > SLOW_MS;

  return {
    available(counted) {
      const { webhookId, receiver } = counted;
      const median = medianOf(receiver);
      const halved = median !== null && isSlow(median) ? PER_RECEIVER_MAX / 2 : 0;
      return Math.min(
        byWebhook.left(webhookId),
        byReceiver.left(receiver) - halved,
        ...shared.map(({ all, idOf }) => all.left(idOf(counted))),
        ...shared.map(({ slow, idOf }) =>
          isSlow(median) ? slow.left(idOf(counted)) : Number.POSITIVE_INFINITY,
        ),
      );
    },
    acquire(counted) {
      const wasSlow = isSlow(medianOf(counted.receiver));
      const change = (by: 1 | -1): void => {
        byWebhook.add(counted.webhookId, by);
        byReceiver.add(counted.receiver, by);
        for (const { all, slow, idOf } of shared) {
          all.add(idOf(counted), by);
          if (wasSlow) slow.add(idOf(counted), by);
        }
      };
      change(1);
      let isReleased = false;
      return () => {
        if (!isReleased) change(-1);
        isReleased = true;
      };
    },
    record(receiver, duration) {
      const last = [...(durations.get(receiver) ?? []), duration].slice(-DURATIONS_MAX);
      durations.delete(receiver);
      durations.set(receiver, last);
      const oldest = durations.keys().next().value;
      if (durations.size > RECEIVERS_MAX && oldest !== undefined) durations.delete(oldest);
    },
    isExhausted: () => total.left(ALL) <= 0,
  };
}

/** Counts what runs, by id. @param max the most of one id */
function createCounts(max: number) {
  const counts = new Map<string, number>();
  return {
    max,
    left: (id: string): number => max - (counts.get(id) ?? 0),
    add(id: string, change: 1 | -1): void {
      const count = (counts.get(id) ?? 0) + change;
      if (count === 0) counts.delete(id);
      else counts.set(id, count);
    },
  };
}
