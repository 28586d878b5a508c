/** How many attempts may run side by side in this process. Pure bookkeeping. */
import type { Head } from './lease.ts';

const ALL = 128;
/** An eighth: it takes more than a handful of workspaces full of hanging receivers to be in the way of others. */
const OF_WORKSPACE = 16;
const OF_WEBHOOK = 4;

export interface Places {
  /** How many more attempts at deliveries of this webhook may begin. */
  left(head: Head): number;
  take(head: Head): void;
  giveBack(head: Head): void;
  areAllTaken(): boolean;
}

export function places(): Places {
  const ofWebhook = new Map<string, number>();
  const ofWorkspace = new Map<string, number>();
  let all = 0;

  const add = (counts: Map<string, number>, id: string, change: 1 | -1): void => {
    const count = (counts.get(id) ?? 0) + change;
    if (count === 0) counts.delete(id);
    else counts.set(id, count);
  };
  const change = ({ webhookId, workspaceId }: Head, by: 1 | -1): void => {
    add(ofWebhook, webhookId, by);
    add(ofWorkspace, workspaceId, by);
    all += by;
  };

  return {
    left: ({ webhookId, workspaceId }) =>
      Math.min(
        OF_WEBHOOK - (ofWebhook.get(webhookId) ?? 0),
        OF_WORKSPACE - (ofWorkspace.get(workspaceId) ?? 0),
        ALL - all,
      ),
    take: (head) => change(head, 1),
    giveBack: (head) => change(head, -1),
    areAllTaken: () => all >= ALL,
  };
}
