/** Routes for stored refusals: one by its id, the newest ones, and a search. */
import type { FastifyInstance } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { DECISION_ID_LENGTH, isDecisionId } from '#gateway/refusals/decision-ids.ts';
import { DECISIONS_MAX, type DecisionRecord } from '#gateway/refusals/decision-record.ts';
import type { DecisionText } from '#gateway/refusals/explain.ts';
import type { AdminContext } from './context.ts';
import { AdminError, input } from './input.ts';

/** Maximum number of refusals in one reply. */
const PAGE_MAX = 100;
/** Number of records read at once. A search reads all stored records, which is some megabytes. */
const BATCH = 500;
const SEARCHES_MAX = 2;

const NO_ID = 'this is not a decision id; take the value of x-gateway-decision from the refused reply';
const NOT_STORED =
  'is stored: of a flood only a sample is, and none for longer than a day; the line of the access log with this id has more: grep it there';

const searchSchema = input(
  {
    text: { type: 'string', maxLength: 200 },
    policy: { type: 'string', maxLength: 1000 },
    identity: { type: 'string', maxLength: 22 },
    before: { type: 'string', maxLength: DECISION_ID_LENGTH },
  },
  [],
);

type Search = XStatic<typeof searchSchema>;

const idSchema = {
  type: 'object',
  properties: { id: { type: 'string' } },
  required: ['id'],
} as const;

/** A refusal, and the same in words. */
export interface ToldDecision extends DecisionRecord, DecisionText {
  /** Address of the counted client; null if it is unknown. */
  readonly address: string | null;
}

export function decisionsRoutes(
  app: FastifyInstance,
  { findDecision, listDecisions, addresses }: AdminContext,
): void {
  let searches = 0;
  app.get<{ Params: { id: string } }>(
    '/decisions/:id',
    { schema: { params: idSchema } },
    async ({ params: { id } }): Promise<ToldDecision> => {
      if (!isDecisionId(id)) throw new AdminError(400, NO_ID);
      const record = await findDecision(id).catch(unavailable);
      if (record === null) throw new AdminError(404, `no refusal with the id ${id} ${NOT_STORED}`);
      const address = addresses?.find(record.identity) ?? null;
      // Load this module only here, because searches by id are rare.
      const { textOf } = await import('#gateway/refusals/explain.ts');
      return { ...record, address, ...textOf(record, address) };
    },
  );

  app.get<{ Querystring: Search }>(
    '/decisions',
    { schema: { querystring: searchSchema } },
    async ({ query }) => {
      if (searches >= SEARCHES_MAX) throw new AdminError(503, 'other searches are running; try again');
      searches++;
      try {
        const page = await search(query, listDecisions);
        return { ...page, addresses: addressesOf(page.decisions, addresses) };
      } catch (error) {
        return unavailable(error as Error);
      } finally {
        searches--;
      }
    },
  );
}

/** @returns the known addresses by digest */
export function addressesOf(
  clients: readonly { readonly identity: string }[],
  addresses: AdminContext['addresses'],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { identity } of clients) {
    const address = addresses?.find(identity);
    if (address) found[identity] = address;
  }
  return found;
}

function unavailable(error: Error): never {
  throw new AdminError(503, `decisions cannot be read: ${error.message}`, { cause: error });
}

async function search(
  query: Search,
  list: AdminContext['listDecisions'],
): Promise<{ decisions: readonly DecisionRecord[]; next: string | null }> {
  const { text = '', policy = '', identity = '' } = query;
  const words = text.trim().toLowerCase();
  const isAll = words === '' && policy === '' && identity === '';
  const found: DecisionRecord[] = [];
  let before = query.before || null;
  for (let read = 0; read < DECISIONS_MAX; read += BATCH) {
    const batch = await list(before, isAll ? PAGE_MAX : BATCH);
    for (const record of batch) {
      before = record.id;
      if (policy !== '' && !record.violated.includes(policy) && record.policy !== policy) continue;
      if (identity !== '' && record.identity !== identity) continue;
      if (words !== '' && !textIn(record).includes(words)) continue;
      found.push(record);
      if (found.length >= PAGE_MAX) return { decisions: found, next: before };
    }
    if (batch.length < BATCH) break;
  }
  return { decisions: found, next: null };
}

function textIn({ id, decision, method, path, violated, policy, identity }: DecisionRecord): string {
  return `${id} ${decision} ${method} ${path} ${policy} ${violated.join(' ')} ${identity}`.toLowerCase();
}
