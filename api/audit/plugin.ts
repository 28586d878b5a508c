/**
 * Writes an audit entry for every write that a known caller makes or tries to make: who, what, from where, and how it
 * ended. The entry is written before the reply is sent, so a caller that has the reply finds its entry.
 */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Principal } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { isId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import { type AuditLog, actorOf, organizationOf } from './audit.ts';
import { type Written, writtenBy } from './write.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The entry for a refused request, on a route that writes the entries of its successes itself. */
    readonly refusedAs?: Written;
  }
}

interface AuditPluginOptions {
  readonly audit: AuditLog;
  readonly db: Database;
  readonly trustedProxies: ProxyTrust;
  /** @param target the router's pattern, or the target where no route matches */
  readonly findSurface: (target: string) => { readonly credentials: unknown };
}

const FIELDS_MAX = 50;
/** A field name as programs write it. Other texts may be personal data in the wrong place. */
const FIELD = /^[A-Za-z][A-Za-z0-9]{0,39}$/;

const failures: Readonly<Record<number, string>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  429: 'too_many_requests',
};

export const auditPlugin = fastifyPlugin<AuditPluginOptions>(
  async (app, { audit, db, trustedProxies, findSurface }) => {
    if (!audit.isEnabled) return;
    /** For each request `data` of its reply, if that is an object. */
    const replies = new WeakMap<FastifyRequest, Record<string, unknown>>();

    app.addHook('preSerialization', async (request, _reply, payload: unknown) => {
      if (isRecord(payload) && isRecord(payload.data)) replies.set(request, payload.data);
      return payload;
    });

    app.addHook('onSend', async (request, reply) => {
      const { principal, method } = request;
      const { url, config } = request.routeOptions;
      if (principal === null || url === undefined) return;
      const { statusCode } = reply;
      // Routes without credentials, such as those of files, write their own audit entries.
      const isOwn = findSurface(url).credentials === null;
      const refusedAs = statusCode < 400 ? undefined : config.refusedAs;
      const written = isOwn ? (refusedAs ?? null) : writtenBy(method, url);
      if (written === null) return;
      const data = replies.get(request) ?? {};
      const workspaceId = workspaceIn(request, data);
      await audit.record({
        action: written.action,
        actor: actorOf(principal),
        target: { type: written.targetType, id: targetIn(request, principal, data, written) },
        organizationId: await organizationIn(request, principal, data, workspaceId),
        failureReason: statusCode < 400 ? null : (failures[statusCode] ?? failureOf(statusCode)),
        changes: {
          route: `${method} ${url}`,
          fields: fieldsIn(request),
          ...(workspaceId && { workspaceId }),
        },
        ipAddress: countedAddress(request, trustedProxies),
        requestId: request.id,
      });
    });

    /** A request may name one of the organizations of a person. */
    function organizationIn(
      request: FastifyRequest,
      principal: Principal,
      data: Record<string, unknown>,
      workspaceId: string | null,
    ): Promise<string | null> | string {
      const named = idOf(data.organizationId) ?? paramOf(request, 'organizationId');
      const isTheirs =
        named !== null && principal.kind === 'session' && principal.organizationIds.includes(named);
      return isTheirs ? named : organizationOf(db, principal, workspaceId);
    }
  },
  { name: 'audit', dependencies: ['auth'] },
);

function targetIn(
  request: FastifyRequest,
  principal: Principal,
  data: Record<string, unknown>,
  { param, targetType }: Written,
): string {
  const named = param === null ? null : paramOf(request, param);
  // Routes of the profile change the logged-in user.
  const self = targetType === 'user' && principal.kind === 'session' ? principal.userId : null;
  return named ?? idOf(data.id) ?? self ?? 'unknown';
}

function workspaceIn({ params, body }: FastifyRequest, data: Record<string, unknown>): string | null {
  const given = isRecord(body) ? body : {};
  const path = isRecord(params) ? params : {};
  return (
    idOf(data.workspaceId) ?? idOf(path.workspaceId) ?? idOf(given.workspaceId) ?? idOf(given.environmentId)
  );
}

function fieldsIn({ body }: FastifyRequest): readonly string[] {
  return isRecord(body)
    ? Object.keys(body)
        .filter((name) => FIELD.test(name))
        .slice(0, FIELDS_MAX)
    : [];
}

function paramOf({ params }: FastifyRequest, name: string): string | null {
  return isRecord(params) ? idOf(params[name]) : null;
}

/** Returns the text if it is an id. Other texts may be personal data. */
function idOf(value: unknown): string | null {
  return typeof value === 'string' && isId(value) ? value : null;
}

function failureOf(status: number): string {
  return status < 500 ? 'bad_request' : 'internal_server_error';
}
