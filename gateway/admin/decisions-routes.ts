/** `GET /api/decisions/ID`: what stood behind a refusal. */
import type { FastifyInstance } from 'fastify';
import { isDecisionId } from '#gateway/decisions/decision-ids.ts';
import { DECISIONS_MAX, type DecisionRecord } from '#gateway/decisions/decision-record.ts';

export interface DecisionsRoutesOptions {
  /** @throws when the store cannot be asked */
  readonly findDecision: (id: string) => Promise<DecisionRecord | null>;
}

const NOT_KEPT = `is not kept: the newest ${DECISIONS_MAX.toLocaleString('en')} decisions of the last 24 hours are, and of a flood only a sample. Metrics and the access log tell of all.`;

/** For the admin API's scope, which asks who calls. */
export async function decisionsRoutes(
  app: FastifyInstance,
  { findDecision }: DecisionsRoutesOptions,
): Promise<void> {
  app.get<{ Params: { id: string } }>('/decisions/:id', async (request, reply) => {
    const { id } = request.params;
    if (!isDecisionId(id)) {
      return reply.code(400).send({
        message: 'this is no decision id; take the value of x-gateway-decision from the refused reply',
      });
    }
    let record: DecisionRecord | null;
    try {
      record = await findDecision(id);
    } catch (error) {
      return reply.code(503).send({ message: `decisions cannot be read: ${(error as Error).message}` });
    }
    return record ?? reply.code(404).send({ message: `decision ${id} ${NOT_KEPT}` });
  });
}
