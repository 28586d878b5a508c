/** Limits the attempts that run in parallel in this process. */

const TOTAL_MAX = 128;
/** The share of one host: a quarter. So a host that hangs leaves the rest to others, however many webhooks it has. */
const PER_RECEIVER_MAX = 32;
/** The share of one workspace: an eighth. So a few workspaces whose receivers hang do not delay others. */
const PER_WORKSPACE_MAX = 16;
const PER_WEBHOOK_MAX = 4;

export interface Counted {
  readonly webhookId: string;
  readonly workspaceId: string;
  readonly receiver: string;
}

interface AttemptLimits {
  /** The number of attempts for this webhook that may begin now. */
  available(counted: Counted): number;
  /** @returns function that ends the attempt; call it once */
  acquire(counted: Counted): () => void;
  /** Whether no attempt may begin. */
  isExhausted(): boolean;
}

export function createAttemptLimits(): AttemptLimits {
  const byWebhook = new Map<string, number>();
  const byWorkspace = new Map<string, number>();
  const byReceiver = new Map<string, number>();
  let total = 0;

  const add = (counts: Map<string, number>, id: string, change: 1 | -1): void => {
    const count = (counts.get(id) ?? 0) + change;
    if (count === 0) counts.delete(id);
    else counts.set(id, count);
  };
  const change = ({ webhookId, workspaceId, receiver }: Counted, by: 1 | -1): void => {
    add(byWebhook, webhookId, by);
    add(byWorkspace, workspaceId, by);
    add(byReceiver, receiver, by);
    total += by;
  };

  return {
    available: ({ webhookId, workspaceId, receiver }) =>
      Math.min(
        PER_WEBHOOK_MAX - (byWebhook.get(webhookId) ?? 0),
        PER_WORKSPACE_MAX - (byWorkspace.get(workspaceId) ?? 0),
        PER_RECEIVER_MAX - (byReceiver.get(receiver) ?? 0),
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
    isExhausted: () => total >= TOTAL_MAX,
  };
}
