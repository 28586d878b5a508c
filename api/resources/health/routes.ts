/** Is the service there, and can it do its work? */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';

const Well = Type.Object({ status: Type.String() });
const Unwell = Type.Object({ status: Type.String(), problem: Type.String() });
const schema = { response: { 200: Well, 503: Unwell } };

export const healthRoutes: Routes = async (app, { context: { db, health } }) => {
  // What still arrives on open connections is answered, but a load balancer shall send no more.
  let isDraining = false;
  app.addHook('preClose', async () => {
    isDraining = true;
  });

  /** Does it serve? 503 while it stops, or cannot reach its database. */
  app.get('/health', { schema }, async (_request, reply) => {
    const problem = isDraining ? 'draining' : (await health.isReached(db)) ? null : 'database_unreachable';
    if (problem === null) return { status: 'ok' };
    return reply.code(503).send({ status: 'unavailable', problem });
  });

  /** Likewise, and also while the database cannot be written. */
  app.get('/ready', { schema }, async (_request, reply) => {
    const problem = isDraining ? 'draining' : await health.check(db);
    if (problem === null) return { status: 'ready' };
    return reply.code(503).send({ status: 'unavailable', problem });
  });
};
