/** Limits the attempts that run in parallel in this process. */

const TOTAL_MAX = 128;
/** The share of one host: a quarter. So a host that hangs leaves the rest to others, however many webhooks it has. */
const PER_RECEIVER_MAX = 32;
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
  /** @returns how many attempts for this webhook may begin now @param webhookMax how many may run */
  available(counted: Counted, webhookMax?: number): number;
  /** @returns function that ends the attempt; call it once */
  acquire(counted: Counted): () => void;
  /** Whether no attempt may begin. */
  isExhausted(): boolean;
}

export function createAttemptLimits(): AttemptLimits {
  /** The number of running attempts of each share. */
  const running = new Map<string, number>();
  const runningOf = (share: string): number => running.get(share) ?? 0;
  const add = (counted: Counted, change: 1 | -1): void => {
    for (const [share] of sharesOf(counted)) {
      const count = runningOf(share) + change;
      if (count === 0) running.delete(share);
      else running.set(share, count);
    }
  };

  return {
    available: (counted, webhookMax) =>
      Math.min(...sharesOf(counted, webhookMax).map(([share, max]) => max - runningOf(share))),
    acquire(counted) {
      add(counted, 1);
      let isReleased = false;
      return () => {
        if (!isReleased) add(counted, -1);
        isReleased = true;
      };
    },
    isExhausted: () => runningOf(ALL) >= TOTAL_MAX,
  };
}

const ALL = 'all';

/** Returns the shares in which an attempt counts, with their maximum. */
function sharesOf(
  { webhookId, workspaceId, organizationId, receiver }: Counted,
  webhookMax = PER_WEBHOOK_MAX,
): readonly (readonly [share: string, max: number])[] {
  return [
    [ALL, TOTAL_MAX],
    [`receiver ${receiver}`, PER_RECEIVER_MAX],
    [`organization ${organizationId}`, PER_ORGANIZATION_MAX],
    [`workspace ${workspaceId}`, PER_WORKSPACE_MAX],
    [`webhook ${webhookId}`, webhookMax],
  ];
}
