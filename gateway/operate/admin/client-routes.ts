/** Routes for one client: its state, and the actions of operators. Every change is logged. */

import type { FastifyInstance } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { BAN_MS_MAX } from '#gateway/bans/bans.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { isoTime } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { addressesOf } from './decisions-routes.ts';
import { input } from './input.ts';
import { type Inspected, inspect, type ShownBan, shownBan } from './inspect.ts';
import { type Named, namedBy, type Subject, subjectProperties, subjectSchema } from './subject.ts';

const REASON_LENGTH_MAX = 200;

const banSchema = input(
  {
    ...subjectProperties,
    seconds: { type: 'integer', minimum: 1, maximum: BAN_MS_MAX / 1000 },
    reason: { type: 'string', maxLength: REASON_LENGTH_MAX },
  },
  ['subject', 'seconds'],
);

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

export interface InspectedClient extends Inspected {
  /** The address that was refused lately, if operators may see it. */
  readonly address: string | null;
}

export async function clientRoutes(
  app: FastifyInstance,
  { policies, control, audit, addresses }: AdminContext,
): Promise<void> {
  const identify = async (subject: Subject): Promise<Named> =>
    namedBy(subject, policies(), await control.salt());
  const known = async (named: Named): Promise<InspectedClient> => {
    const found = await inspect(named, policies(), control);
    return { ...found, address: addresses?.find(named.identity.digest) ?? null };
  };
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
    const found = await identify(request.body);
    const { identity, visitor } = found;
    const cleared = await control.reset(
      identity,
      // A reset does not change counters of requests in flight.
      countersOf(policies()).filter(({ policy }) => !ALGORITHMS[policy.algorithm].isHeld),
    );
    // Its days are deleted too.
    if (visitor.client.digest !== identity.digest) await control.reset(visitor.client, []);
    audit(request, 'reset', { identity: identity.digest, cleared });
    return { ...(await known(found)), cleared };
  });

  app.post<{ Body: XStatic<typeof banSchema> }>('/ban', { schema: { body: banSchema } }, async (request) => {
    const { seconds, reason = '', ...subject } = request.body;
    const found = await identify(subject);
    const { bannedAs } = found;
    const { endsAt } = await control.ban(bannedAs, seconds * 1000, reason);
    const until = isoTime(endsAt);
    audit(request, 'ban', { identity: bannedAs.digest, seconds, until, reason });
    return { ...(await known(found)), changed: true };
  });

  app.post<{ Body: Subject }>('/unban', { schema: { body: subjectSchema } }, async (request) => {
    const found = await identify(request.body);
    const { bannedAs } = found;
    const changed = await control.unban(bannedAs);
    audit(request, 'unban', { identity: bannedAs.digest, changed });
    return { ...(await known(found)), changed };
  });
}
