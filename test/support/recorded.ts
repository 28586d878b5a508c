/** Finds the record of one of many refusals. Of those in one second only some get a record, and which ones depends on their order. */
import type { IncomingHttpHeaders } from 'node:http';
import type { DecisionRecord } from '#gateway/refusals/decision-record.ts';

interface Recording {
  findDecision(id: string): Promise<DecisionRecord | null>;
}

/** @param refused replies of this gateway @returns null if none of them was recorded */
export async function recordedOf(
  gateway: Recording,
  refused: readonly { readonly headers: IncomingHttpHeaders }[],
): Promise<DecisionRecord | null> {
  const ids = refused.map(({ headers }) => String(headers['x-gateway-decision']));
  const records = await Promise.all(ids.map((id) => gateway.findDecision(id)));
  return records.find((record) => record !== null) ?? null;
}
