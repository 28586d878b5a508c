/** Routes for policies: list them, try a request, and set shadow mode. */
import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SHADOW_MS_MAX, shadowed } from '#gateway/bans/shadows.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { explainLive } from './explain-live.ts';
import { AdminError, input, post } from './input.ts';

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

export function policyRoutes(app: FastifyInstance, options: AdminContext): void {
  const { policies, policyText, policyRefusal, control, audit } = options;

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

  post(
    app,
    '/explain',
    explainSchema,
    async ({ request, headers = [], from = '127.0.0.1', body = '', plan }) => {
      if (isIP(from) === 0) throw new AdminError(400, 'from must be an address such as 192.0.2.1');
      const set = shadowed(policies(), await control.shadows());
      return explainLive({ ...readRequest(request, headers, from), body, plan }, set, options);
    },
  );

  post(app, '/shadow', toShadowSchema, async ({ policy: name, seconds }, request) => {
    const policy = named(policies(), name);
    const shadowEndsAt = isoTime(await control.shadow(policy.bucket, seconds * 1000));
    audit(request, 'shadow', { policy: name, seconds, until: shadowEndsAt });
    return { policies: sharing(policies(), policy), shadowEndsAt, changed: true };
  });

  post(app, '/unshadow', unshadowSchema, async ({ policy: name }, request) => {
    const policy = named(policies(), name);
    const changed = await control.unshadow(policy.bucket);
    audit(request, 'unshadow', { policy: name, changed });
    return { policies: sharing(policies(), policy), shadowEndsAt: null, changed };
  });
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
  const { name, line, bucket, mode, capacity: limit, windowSeconds, algorithm } = policy;
  const endsAt = ends.get(bucket);
  return {
    ...{ name, line, bucket, limit, windowSeconds, algorithm, mode },
    route: policy.route.text,
    identifier: policy.identifier.name,
    distinct: policy.distinct?.name ?? null,
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
