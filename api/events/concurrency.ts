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
  const byWebhook = new Map<string, number>();
  const byWorkspace = new Map<string, number>();
  const byOrganization = new Map<string, number>();
  const byReceiver = new Map<string, number>();
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

  return {
    available: ({ webhookId, workspaceId, organizationId, receiver }, webhookMax = PER_WEBHOOK_MAX) =>
      Math.min(
        webhookMax - (byWebhook.get(webhookId) ?? 0),
        PER_WORKSPACE_MAX - (byWorkspace.get(workspaceId) ?? 0),
        PER_ORGANIZATION_MAX - (byOrganization.get(organizationId) ?? 0),
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
