/** The admin API: what the command line asks a running gateway. Every change is logged: who, what, and whose digest. */
import { isIP } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { XStatic } from 'typebox/schema';
import { BAN_MS_MAX } from '#gateway/control/bans.ts';
import { type Control, ControlUnavailableError, TooManyBansError } from '#gateway/control/control.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import type { PolicySet } from '#gateway/policy/policy.ts';
import { requestOf } from '#gateway/rehearsal/request-text.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { type DecisionsRoutesOptions, decisionsRoutes } from './decisions-routes.ts';
import { type DoctorRoutesOptions, doctorRoutes } from './doctor-routes.ts';
import { explainLive } from './explain-live.ts';
import { type GuardOptions, guard } from './guard.ts';
import { inspect } from './inspect.ts';
import { identityFor, type Subject, SubjectError, subjectProperties, subjectSchema } from './subject.ts';
import { type TopSource, topSnapshot } from './top.ts';

export interface AdminApiOptions extends GuardOptions, DecisionsRoutesOptions, DoctorRoutesOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly trust: ProxyTrust;
  /** In use at this moment. */
  readonly policies: () => PolicySet;
  readonly control: Control;
  readonly top: TopSource;
}

const HEADERS_MAX = 128;
const REASON_LENGTH_MAX = 200;

const explainSchema = {
  type: 'object',
  properties: {
    request: { type: 'string', minLength: 1, maxLength: 16_384 },
    headers: { type: 'array', items: { type: 'string', maxLength: 16_384 }, maxItems: HEADERS_MAX },
    from: { type: 'string', maxLength: 64 },
    plan: { type: 'string', minLength: 1, maxLength: 64 },
  },
  required: ['request'],
  additionalProperties: false,
} as const;

const banSchema = {
  type: 'object',
  properties: {
    ...subjectProperties,
    seconds: { type: 'integer', minimum: 1, maximum: BAN_MS_MAX / 1000 },
    reason: { type: 'string', maxLength: REASON_LENGTH_MAX },
  },
  required: ['subject', 'seconds'],
  additionalProperties: false,
} as const;

/** What cannot be asked; the message says what to write. */
class BadRequestError extends Error {}

export function addAdminApi(app: FastifyInstance, options: AdminApiOptions): void {
  app.register(async (api) => addRoutes(api, options), { prefix: '/api' });
}

function addRoutes(api: FastifyInstance, options: AdminApiOptions): void {
  const { log, clock, trust, policies, control, top, token } = options;
  guard(api, options);
  api.setErrorHandler(async (error: FastifyError, _request, reply) => {
    const status = statusOf(error);
    if (status === 500) log.error(error, 'the admin API failed');
    const message = status === 500 ? 'a mistake in the gateway; its log has the details' : error.message;
    return reply.code(status).send({ message });
  });

  const audit = ({ ip }: FastifyRequest, change: string, { digest }: Identity, more: object = {}): void => {
    log.info(
      { by: token === null ? ip : `token, from ${ip}`, change, identity: digest, ...more },
      'admin change',
    );
  };
  const identify = async (subject: Subject): Promise<Identity> =>
    identityFor(subject, policies(), await control.salt());

  api.register(decisionsRoutes, options);
  api.register(doctorRoutes, options);

  api.get('/top', async () => topSnapshot(top, clock()));

  api.post<{ Body: XStatic<typeof explainSchema> }>(
    '/explain',
    { schema: { body: explainSchema } },
    async ({ body }) => {
      const { request, headers = [], from = '127.0.0.1', plan } = body;
      if (isIP(from) === 0) throw new BadRequestError('from must be an address such as 192.0.2.1');
      return explainLive(
        { ...readRequest(request, headers, from), plan },
        { set: policies(), trust, control, clock },
      );
    },
  );

  api.post<{ Body: Subject }>('/inspect', { schema: { body: subjectSchema } }, async ({ body }) =>
    inspect(await identify(body), policies(), control),
  );

  api.post<{ Body: Subject }>('/reset', { schema: { body: subjectSchema } }, async (request) => {
    const identity = await identify(request.body);
    const cleared = await control.reset(
      identity,
      // What is in flight stays in flight.
      countersOf(policies()).filter(({ policy }) => policy.algorithm !== 'concurrency'),
    );
    audit(request, 'reset', identity, { cleared });
    return { ...(await inspect(identity, policies(), control)), cleared };
  });

  api.post<{ Body: XStatic<typeof banSchema> }>('/ban', { schema: { body: banSchema } }, async (request) => {
    const { seconds, reason = '', ...subject } = request.body;
    const identity = await identify(subject);
    const { endsAt } = await control.ban(identity, seconds * 1000, reason);
    audit(request, 'ban', identity, { seconds, until: new Date(Math.round(endsAt)).toISOString(), reason });
    return { ...(await inspect(identity, policies(), control)), changed: true };
  });

  api.post<{ Body: Subject }>('/unban', { schema: { body: subjectSchema } }, async (request) => {
    const identity = await identify(request.body);
    const changed = await control.unban(identity);
    audit(request, 'unban', identity, { changed });
    return { ...(await inspect(identity, policies(), control)), changed };
  });
}

function readRequest(...text: Parameters<typeof requestOf>): ReturnType<typeof requestOf> {
  try {
    return requestOf(...text);
  } catch (error) {
    throw new BadRequestError((error as Error).message);
  }
}

function statusOf(error: FastifyError): number {
  if (error instanceof SubjectError || error instanceof BadRequestError) return 400;
  if (error instanceof ControlUnavailableError) return 503;
  if (error instanceof TooManyBansError) return 409;
  return error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
}
