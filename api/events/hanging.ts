/**
 * Tells which webhooks hang: several attempts in a row had no answer in time. From then on there is one attempt at a time,
 * and without an answer all due deliveries fail together with it (settle.ts). So a backlog is parked as it would be after
 * attempts of five seconds each. What is known belongs to this process, is bounded, and may be lost.
 */

/** Number of timeouts in a row after which a webhook hangs. */
const HANGS_AFTER = 3;
/** Maximum number of webhooks. The one that timed out longest ago is dropped first. */
const KNOWN_MAX = 10_000;

interface HangingWebhooks {
  has(webhookId: string): boolean;
  /** Records the result of an attempt. Any answer ends the row, even a refusal. */
  record(webhookId: string, isTimeout: boolean): void;
}

export function createHangingWebhooks(knownMax = KNOWN_MAX): HangingWebhooks {
  const inARow = new Map<string, number>();
  return {
    has: (webhookId) => (inARow.get(webhookId) ?? 0) >= HANGS_AFTER,
    record(webhookId, isTimeout) {
      const count = (inARow.get(webhookId) ?? 0) + 1;
      inARow.delete(webhookId);
      if (isTimeout) inARow.set(webhookId, count);
      const [oldest] = inARow.keys();
      if (inARow.size > knownMax && oldest !== undefined) inARow.delete(oldest);
    },
  };
}
