/** Limits the attempts that run in parallel in this process. */
import type { Millis } from '#shared/clock.ts';

const TOTAL_MAX = 128;
/** The share of one host: a quarter. So a host that hangs leaves the rest to others, however many webhooks it has. */
const PER_RECEIVER_MAX = 32;
/** The share of a receiver that usually takes longer than this is halved, because each attempt holds its place longer. */
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
  const byWebhook = new Map<string, number>();
  const byWorkspace = new Map<string, number>();
  const byOrganization = new Map<string, number>();
  const byReceiver = new Map<string, number>();
  const durations = new Map<string, readonly Millis[]>();
  let total = 0;

  const add = (counts: Map<string, number>, id: string, change: 1 | -1): void => {
    const count = (counts.get(id) ?? 0) + change;
    if (count === 0) counts.delete(id);
    else counts.set(id, count);
  };
  const change = ({ webhookId, workspaceId, organizationId, receiver }: Counted, by: 1 | -1): void => {
    add(byWebhook, webhookId, by);
    add(byWorkspace, workspaceId, by);
    add(byOrganization, organizationId, by);
    add(byReceiver, receiver, by);
    total += by;
  };

  const shareOf = (receiver: string): number => {
    const sorted = (durations.get(receiver) ?? []).toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
    return median > SLOW_MS ? PER_RECEIVER_MAX / 2 : PER_RECEIVER_MAX;
  };

  return {
    available: ({ webhookId, workspaceId, organizationId, receiver }) =>
      Math.min(
        PER_WEBHOOK_MAX - (byWebhook.get(webhookId) ?? 0),
        PER_WORKSPACE_MAX - (byWorkspace.get(workspaceId) ?? 0),
        PER_ORGANIZATION_MAX - (byOrganization.get(organizationId) ?? 0),
        shareOf(receiver) - (byReceiver.get(receiver) ?? 0),
        TOTAL_MAX - total,
      ),
    acquire(counted) {
      change(counted, 1);
      let isReleased = false;
      return () => {
        if (!isReleased) change(counted, -1);
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
    isExhausted: () => total >= TOTAL_MAX,
  };
}
