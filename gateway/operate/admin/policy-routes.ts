/** Routes for policies: list them, try a request, and set shadow mode. */
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { SHADOW_MS_MAX, shadowed } from '#gateway/bans/shadows.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { AdminError } from './errors.ts';
import { explainLive } from './explain-live.ts';
import { input } from './input.ts';

const HEADERS_MAX = 128;
const NO_SHADOWS: ReadonlyMap<string, Millis> = new Map();
const NAME_LENGTH_MAX = 1000;

const explainSchema = input(
  {
    request: { type: 'string', minLength: 1, maxLength: 16_384 },
    headers: {
      type: 'array',
      items: { type: 'string', maxLength: 16_384 },
      maxItems: HEADERS_MAX,
    },
    from: { type: 'string', maxLength: 64 },
    body: { type: 'string', maxLength: 16_384 },
    plan: { type: 'string', minLength: 1, maxLength: 64 },
  },
  ['request'],
);

const policyName = { type: 'string', minLength: 1, maxLength: NAME_LENGTH_MAX } as const;
const shadowSeconds = { type: 'integer', minimum: 1, maximum: SHADOW_MS_MAX / 1000 } as const;
const toShadowSchema = input({ policy: policyName, seconds: shadowSeconds }, ['policy', 'seconds']);
const unshadowSchema = input({ policy: policyName }, ['policy']);

export async function policyRoutes(app: FastifyInstance, options: AdminContext): Promise<void> {
  const { clock, trust, policies, policyText, policyRefusal, control, audit } = options;

  app.get('/policies', async () => {
    const set = policies();
    // During an outage of the store, show the file without shadow modes.
    const ends = await control.shadows().catch(() => null);
    return {
      file: set.file,
      version: set.version,
      refusal: policyRefusal(),
      areShadowsKnown: ends !== null,
      text: policyText(),
      policies: set.policies.map((policy) => toldOf(policy, ends ?? NO_SHADOWS)),
    };
  });

  app.post<{ Body: XStatic<typeof explainSchema> }>(
    '/explain',
    { schema: { body: explainSchema } },
    async ({ body }) => {
      const { request, headers = [], from = '127.0.0.1', body: sent = '', plan } = body;
      if (isIP(from) === 0) throw new AdminError(400, 'from must be an address such as 192.0.2.1');
      return explainLive(
        { ...readRequest(request, headers, from), body: sent, plan },
        { set: shadowed(policies(), await control.shadows()), trust, control, clock },
      );
    },
  );

  app.post<{ Body: XStatic<typeof toShadowSchema> }>(
    '/shadow',
    { schema: { body: toShadowSchema } },
    async (request) => {
      const { policy: name, seconds } = request.body;
      const policy = named(policies(), name);
      const endsAt = isoTime(await control.shadow(policy.bucket, seconds * 1000));
      audit(request, 'shadow', { policy: name, seconds, until: endsAt });
      return { policies: sharing(policies(), policy), shadowEndsAt: endsAt, changed: true };
    },
  );

  app.post<{ Body: XStatic<typeof unshadowSchema> }>(
    '/unshadow',
    { schema: { body: unshadowSchema } },
    async (request) => {
      const policy = named(policies(), request.body.policy);
      const changed = await control.unshadow(policy.bucket);
      audit(request, 'unshadow', { policy: policy.name, changed });
      return { policies: sharing(policies(), policy), shadowEndsAt: null, changed };
    },
  );
}

/** @throws AdminError 404 */
function named({ policies, file }: PolicySet, name: string): LoadedPolicy {
  const found = policies.find((policy) => policy.name === name);
  if (found === undefined) throw new AdminError(404, `${file} has no such policy`);
  return found;
}

/** Returns the policies that share the counter. They deny together, or none does. */
function sharing({ policies }: PolicySet, { bucket }: LoadedPolicy): string[] {
  return policies.filter((policy) => policy.bucket === bucket).map(({ name }) => name);
}

function toldOf(policy: LoadedPolicy, ends: ReadonlyMap<string, Millis>): object {
  const { name, line, bucket, route, identifier, mode, capacity: limit, windowSeconds, algorithm } = policy;
  const distinct = policy.distinct?.name ?? null;
  const endsAt = ends.get(bucket);
  return {
    name,
    line,
    bucket,
    route: route.text,
    identifier: identifier.name,
    limit,
    windowSeconds,
    algorithm,
    distinct,
    mode,
    shadowEndsAt: endsAt === undefined ? null : isoTime(endsAt),
  };
}

/** @throws AdminError 400 */
function readRequest(...text: Parameters<typeof requestOf>): ReturnType<typeof requestOf> {
  try {
    return requestOf(...text);
  } catch (error) {
    throw new AdminError(400, (error as Error).message);
  }
}
