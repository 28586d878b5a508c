/**
 * Segments on the management API: a route of our own, because the original product has none: surveys refer to segments,
 * and nothing else could make them. Needs a key; rights go by method.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import { badRequest, conflict, forbidden, notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { referencesOf } from './reference-cycles.ts';
import { checkFilters, referencesIn } from './references.ts';
import { NewSegment, SegmentChange, SegmentReply } from './schema.ts';
import {
  countSharedSegments,
  deleteSegment,
  eachSegment,
  findSegment,
  insertSegment,
  listSegments,
  type Segment,
  surveysOfSegments,
  updateSegment,
} from './store.ts';

/** A page: each has up to 500 filters. */
const LIST_MAX = 500;
/** Of one workspace, those that surveys share. */
const SHARED_MAX = 500;
/** Shown of one segment. */
const SURVEYS_MAX = 500;

const Params = Type.Object({ segmentId: Type.String() });
const one = { 200: Type.Object({ data: SegmentReply }) };

type Complete = Segment & { readonly environmentId: string };

export const segmentRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const url = '/api/v1/management/segments';
  const oneUrl = `${url}/:segmentId`;
  const segments = workspaceRow({ db, type: 'Segment', param: 'segmentId', find: findSegment });

  const withSurveys = async (found: readonly Complete[]) => {
    const surveys = await surveysOfSegments(
      db,
      found.map(({ id }) => id),
      SURVEYS_MAX * Math.max(found.length, 1),
    );
    return found.map((segment) => ({
      ...segment,
      surveys: (surveys.get(segment.id) ?? []).slice(0, SURVEYS_MAX),
    }));
  };
  const toReply = async (segment: Complete) => {
    const [complete] = await withSurveys([segment]);
    if (complete === undefined) throw new Error('A segment came back without itself');
    return { data: complete };
  };

  app.get(
    url,
    {
      schema: { querystring: ListQuery, response: { 200: Type.Object({ data: Type.Array(SegmentReply) }) } },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listSegments(db, workspaceIds, page),
      );
      return { data: await withSurveys(await withEnvironmentIds(db, found)) };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewSegment, response: one },
      config: { refuses: ['forbidden', 'conflict'] },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const { id: workspaceId, environmentId } = workspaceOf(request);
      const { title, description = null, filters = [] } = request.body;
      const now = toTimestamp(clock());
      const made: Segment = {
        id: newId(random),
        workspaceId,
        title,
        description,
        isPrivate: false,
        filters,
        createdAt: now,
        updatedAt: now,
      };
      const references = referencesIn(filters);
      await unlessTitleTaken(title, () =>
        db.transaction().execute(async (trx) => {
          await lockRow(trx, 'workspaces', workspaceId);
          await checkFilters(trx, made, references);
          if ((await countSharedSegments(trx, workspaceId)) >= SHARED_MAX) {
            throw forbidden(`A workspace can have ${SHARED_MAX} segments; delete one that is not used`);
          }
          await insertSegment(trx, made);
        }),
      );
      states.purge({ workspaceId, environmentId });
      return toReply({ ...made, environmentId });
    },
  );

  app.get(oneUrl, { schema: { params: Params, response: one }, onRequest: segments.load }, async (request) =>
    toReply(segments.of(request)),
  );

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: SegmentChange, response: one },
      config: { refuses: ['bad_request', 'conflict'] },
      onRequest: segments.load,
    },
    async (request) => {
      const { id, environmentId, workspaceId } = segments.of(request);
      const { title, description, filters } = request.body;
      const references = referencesIn(filters ?? []);
      const changed = await unlessTitleTaken(title ?? '', () =>
        db.transaction().execute(async (trx) => {
          // Read again: another change may have come while this one's body was on its way.
          await lockRow(trx, 'workspaces', workspaceId);
          const stored = await findSegment(trx, id);
          if (stored === null) throw notFound('Segment', id);
          if (stored.isPrivate && title !== undefined && title !== stored.title) {
            throw badRequest(
              'The segment of a survey has the id of the survey as its title; leave the title out',
            );
          }
          const segment = {
            ...stored,
            environmentId,
            title: title ?? stored.title,
            description: description === undefined ? stored.description : description,
            filters: filters ?? stored.filters,
            updatedAt: toTimestamp(clock()),
          };
          await checkFilters(trx, segment, references);
          await updateSegment(trx, segment);
          return segment;
        }),
      );
      states.purge(changed);
      return toReply(changed);
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: Params, response: one },
      config: { refuses: ['bad_request', 'conflict'] },
      onRequest: segments.load,
    },
    async (request) => {
      const stored = segments.of(request);
      if (stored.isPrivate) throw badRequest('This segment belongs to a survey and goes with it');
      await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', stored.workspaceId);
        // Without its segment a survey would be shown to nobody.
        const surveys = await surveysOfSegments(trx, [stored.id], 1);
        if (surveys.size > 0) throw conflict('The segment is used by a survey; give that another one first');
        for await (const { id, filters } of eachSegment(trx, stored.workspaceId)) {
          if (!referencesOf(filters).includes(stored.id)) continue;
          throw conflict('Another segment refers to this one; change that first', { segmentId: id });
        }
        await deleteSegment(trx, stored.id);
      });
      states.purge(stored);
      return { data: { ...stored, surveys: [] } };
    },
  );
};

async function unlessTitleTaken<T>(title: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error, 'segments.workspaceId', 'segments.title')) throw error;
    throw conflict(`Segment with title ${title} already exists`);
  }
}
