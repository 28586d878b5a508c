/** Routes for one client: its state, and the actions of operators. Every change is logged. */

import type { FastifyInstance } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { BAN_MS_MAX } from '#gateway/bans/bans.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { isoTime } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { addressesOf } from './decisions-routes.ts';
import { input } from './input.ts';
import { type Inspected, inspect, type ShownBan, shownBan } from './inspect.ts';
import { identityFor, type Subject, subjectProperties, subjectSchema } from './subject.ts';

const REASON_LENGTH_MAX = 200;

const banSchema = input(
  {
    ...subjectProperties,
    seconds: { type: 'integer', minimum: 1, maximum: BAN_MS_MAX / 1000 },
    reason: { type: 'string', maxLength: REASON_LENGTH_MAX },
  },
  ['subject', 'seconds'],
);

const toShowSchema = input({ seconds: { type: 'integer', minimum: 0, maximum: 3600 } }, ['seconds']);

/** Maximum number of bans in one reply. */
const LISTED = 100;
const countSchema = {
  type: 'string',
  pattern: '^([1-9][0-9]{0,2}|1000)$',
} as const;

export interface ShownBans {
  readonly total: number;
  readonly bans: readonly (ShownBan & { readonly identity: string })[];
  readonly addresses: Readonly<Record<string, string>>;
}

export async function clientRoutes(
  app: FastifyInstance,
  { clock, policies, control, audit, addresses, showAddresses }: AdminContext,
): Promise<void> {
  const identify = async (subject: Subject): Promise<Identity> =>
    identityFor(subject, policies(), await control.salt());
  const known = async (identity: Identity): Promise<Inspected & { address: string | null }> => ({
    ...(await inspect(identity, policies(), control)),
    address: addresses.find(identity.digest),
  });
  app.post<{ Body: Subject }>('/inspect', { schema: { body: subjectSchema } }, async ({ body }) =>
    known(await identify(body)),
  );

  app.get<{ Querystring: { count?: string } }>(
    '/bans',
    { schema: { querystring: input({ count: countSchema }, []) } },
    async ({ query }): Promise<ShownBans> => {
      const { total, bans } = await control.listBans(Number(query.count ?? LISTED));
      const shown = bans.map(({ digest, ...ban }) => ({ identity: digest, ...shownBan(ban) }));
      return { total, bans: shown, addresses: addressesOf(shown, addresses) };
    },
  );

  app.post<{ Body: Subject }>('/reset', { schema: { body: subjectSchema } }, async (request) => {
    const identity = await identify(request.body);
    const cleared = await control.reset(
      identity,
      // A reset does not change counters of requests in flight.
      countersOf(policies()).filter(({ policy }) => !ALGORITHMS[policy.algorithm].isHeld),
    );
    audit(request, 'reset', { identity: identity.digest, cleared });
    return { ...(await known(identity)), cleared };
  });

  app.post<{ Body: XStatic<typeof banSchema> }>('/ban', { schema: { body: banSchema } }, async (request) => {
    const { seconds, reason = '', ...subject } = request.body;
    const identity = await identify(subject);
    const { endsAt } = await control.ban(identity, seconds * 1000, reason);
    const until = isoTime(endsAt);
    audit(request, 'ban', { identity: identity.digest, seconds, until, reason });
    return { ...(await known(identity)), changed: true };
  });

  app.post<{ Body: XStatic<typeof toShowSchema> }>(
    '/addresses',
    { schema: { body: toShowSchema } },
    async (request) => {
      const { seconds } = request.body;
      await showAddresses(seconds * 1000);
      const until = seconds === 0 ? null : isoTime(clock() + seconds * 1000);
      audit(request, seconds === 0 ? 'hide addresses' : 'show addresses', { seconds, until });
      return { until };
    },
  );

  app.post<{ Body: Subject }>('/unban', { schema: { body: subjectSchema } }, async (request) => {
    const identity = await identify(request.body);
    const changed = await control.unban(identity);
    audit(request, 'unban', { identity: identity.digest, changed });
    return { ...(await known(identity)), changed };
  });
}
