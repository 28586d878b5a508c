/** Routes for one client: its state, and the actions of operators. Every change is logged. */
import type { FastifyInstance } from 'fastify';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { BAN_MS_MAX } from '#gateway/bans/bans.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { isoTime } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { addressesOf } from './decisions-routes.ts';
import { input, post } from './input.ts';
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

export function clientRoutes(
  app: FastifyInstance,
  { policies, control, audit, addresses }: AdminContext,
): void {
  const identify = async (subject: Subject): Promise<Named> =>
    namedBy(subject, policies(), await control.salt());
  const known = async (named: Named): Promise<InspectedClient> => {
    const found = await inspect(named, policies(), control);
    return { ...found, address: addresses?.find(named.identity.digest) ?? null };
  };
  post(app, '/inspect', subjectSchema, async (body) => known(await identify(body)));

  app.get<{ Querystring: { count?: string } }>(
    '/bans',
    { schema: { querystring: input({ count: countSchema }, []) } },
    async ({ query }): Promise<ShownBans> => {
      const { total, bans } = await control.listBans(Number(query.count ?? LISTED));
      const shown = bans.map(({ digest, ...ban }) => ({ identity: digest, ...shownBan(ban) }));
      return { total, bans: shown, addresses: addressesOf(shown, addresses) };
    },
  );

  post(app, '/reset', subjectSchema, async (body, request) => {
    const found = await identify(body);
    const { identity, visitor } = found;
    // A reset does not change counters of requests in flight.
    const counters = countersOf(policies()).filter(({ policy }) => !ALGORITHMS[policy.algorithm].isHeld);
    const cleared = await control.reset(identity, counters);
    // Its days are deleted too.
    if (visitor.client.digest !== identity.digest) await control.reset(visitor.client, []);
    audit(request, 'reset', { identity: identity.digest, cleared });
    return { ...(await known(found)), cleared };
  });

  post(app, '/ban', banSchema, async ({ seconds, reason = '', ...subject }, request) => {
    const found = await identify(subject);
    const { endsAt } = await control.ban(found.bannedAs, seconds * 1000, reason);
    audit(request, 'ban', { identity: found.bannedAs.digest, seconds, until: isoTime(endsAt), reason });
    return { ...(await known(found)), changed: true };
  });

  post(app, '/unban', subjectSchema, async (body, request) => {
    const found = await identify(body);
    const changed = await control.unban(found.bannedAs);
    audit(request, 'unban', { identity: found.bannedAs.digest, changed });
    return { ...(await known(found)), changed };
  });
}
