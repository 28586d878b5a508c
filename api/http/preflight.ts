/** Answers preflights of every path below a prefix, even of workspaces that do not exist. */
import type { FastifyInstance } from 'fastify';
import { PREFLIGHT } from './reply-headers.ts';

export function answerPreflights(app: FastifyInstance, prefixes: readonly string[]): void {
  for (const prefix of prefixes) {
    app.options(`${prefix}/*`, { schema: { hide: true } }, async (request, reply) => {
      if (isCollection(request.url)) reply.header('cache-control', PREFLIGHT);
      return { data: {} };
    });
  }
}

function isCollection(target: string): boolean {
  return /\/(environment|displays|responses|user|storage)\/?(\?|$)/.test(target);
}
