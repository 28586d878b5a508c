/**
 * Writes an audit entry for every request of a known caller that may write: who, what, from where, and how it ended. The
 * entry is written before the reply is sent, so a caller that has the reply finds its entry.
 */
import fastifyPlugin from 'fastify-plugin';
import { rightOf } from '#api/auth/principal.ts';
import { isRecord } from '#api/values/schemas.ts';
import type { AuditLog } from './audit.ts';

/** Ids and names of files. Other texts in a path may be personal data. */
const NAME = /^[\w./-]{1,255}$/;

export const auditPlugin = fastifyPlugin<{ readonly audit: AuditLog }>(
  async (app, { audit }) => {
    app.addHook('onSend', async (request, { statusCode }) => {
      const { principal, method, params } = request;
      const { url } = request.routeOptions;
      if (principal === null || url === undefined || rightOf(method) === 'read') return;
      const names = isRecord(params) ? Object.values(params).map(String) : [];
      await audit.record(request, {
        action: `${method} ${url}`,
        actor:
          principal.kind === 'session'
            ? { type: 'user', id: principal.userId }
            : { type: 'api', id: principal.apiKeyId },
        target: names.filter((name) => NAME.test(name)).join('/'),
        isFailure: statusCode >= 400,
        changes: { statusCode },
      });
    });
  },
  { name: 'audit', dependencies: ['auth'] },
);
