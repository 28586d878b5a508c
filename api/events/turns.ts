/**
 * The order in which webhooks get places for attempts: organizations in turn, in each of them the workspaces in turn, and
 * in each of these the webhooks. Who was served longest ago comes first. So an organization with many webhooks waits for
 * itself.
 *
 * What was served belongs to this process, is bounded, and may be lost.
 */
import type { Head } from './lease.ts';

/** Maximum number of organizations, workspaces and webhooks that are remembered. */
const SERVED_MAX = 30_000;

interface Turns {
  order(heads: readonly Head[]): Head[];
  /** Records that a webhook got a place. */
  serve(head: Head): void;
}

export function createTurns(servedMax = SERVED_MAX): Turns {
  /** When each id was served last, as a number that grows. The first one was served longest ago. */
  const served = new Map<string, number>();
  let count = 0;

  const inTurn = (heads: readonly Head[], [level, ...levels]: readonly (keyof Head)[]): Head[] => {
    if (level === undefined) return [...heads];
    const groups = [...Map.groupBy(heads, (head) => head[level])];
    groups.sort(([a], [b]) => (served.get(a) ?? 0) - (served.get(b) ?? 0));
    return alternating(groups.map(([, group]) => inTurn(group, levels)));
  };

  return {
    order: (heads) => inTurn(heads, ['organizationId', 'workspaceId', 'webhookId']),
    serve({ organizationId, workspaceId, webhookId }) {
      count += 1;
      for (const id of [organizationId, workspaceId, webhookId]) {
        served.delete(id);
        served.set(id, count);
      }
      for (const oldest of served.keys()) {
        if (served.size <= servedMax) return;
        served.delete(oldest);
      }
    },
  };
}

/** Takes the first of each list, then the second of each, and so on. */
function alternating(lists: readonly (readonly Head[])[]): Head[] {
  const longest = lists.reduce((most, list) => Math.max(most, list.length), 0);
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list[i] ?? [])).flat();
}
