/** Who changed what: one line of the log for each change. */
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { sessionOf } from './guard.ts';
import type { Sessions } from './sessions.ts';

export type Audit = (request: FastifyRequest, change: string, what: object) => void;

export function auditTo(log: Logger, token: string | null, sessions: Sessions): Audit {
  return (request, change, what) => {
    const { ip } = request;
    const session = token === null ? null : sessionOf(request, sessions);
    const who = session === null ? `token, from ${ip}` : `session ${session.name}, from ${ip}`;
    log.info({ by: token === null ? ip : who, change, ...what }, 'admin change');
  };
}
