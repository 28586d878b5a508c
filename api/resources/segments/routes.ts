/**
 * Segments on v1. Formbricks has no such routes; surveys refer to segments, and nothing else could create
 * them.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { badRequest, conflict, existing, forbidden } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { Nullable, scopeFields } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { checkFilters, referencesIn, referencesOf } from './references.ts';
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

/** Maximum number in a page, because each segment has up to 500 filters. */
const LIST_MAX = 500;
/** Maximum number of segments in a workspace, without private segments. */
const SHARED_MAX = 500;
/** Maximum number of surveys that a reply shows for one segment. */
const SURVEYS_MAX = 500;

const described = {
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
  /** The filters, which filters.ts checks. */
  filters: Type.Optional(Type.Array(Type.Unknown())),
};
const Title = Type.String({ minLength: 1, maxLength: 255 });

const NewSegment = Type.Object({ ...scopeFields, title: Title, ...described });
const SegmentChange = Type.Object({ title: Type.Optional(Title), ...described });

const SegmentReply = Type.Object({
  id: Type.String(),
  title: Type.String(),
  description: Nullable(Type.String()),
  isPrivate: Type.Boolean(),
  filters: Type.Unknown(),
  surveys: Type.Array(Type.String()),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const segmentRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const segments = v1Resource(app, context, {
    url: '/api/v1/management/segments',
    param: 'segmentId',
    type: 'Segment',
    find: findSegment,
    reply: SegmentReply,
    toReplies: async (found) => {
      const ids = found.map(({ id }) => id);
      const surveys = await surveysOfSegments(db, ids, SURVEYS_MAX * Math.max(found.length, 1));
      return found.map((segment) => ({
        ...segment,
        surveys: (surveys.get(segment.id) ?? []).slice(0, SURVEYS_MAX),
      }));
    },
  });

  segments.list(LIST_MAX, listSegments);

  segments.create({ body: NewSegment, refuses: ['forbidden', 'conflict'] }, async (body, workspace) => {
    const { title, description = null, filters = [] } = body;
    const { id: workspaceId, environmentId } = workspace;
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
    return made;
  });

  segments.read();

  segments.change({ body: SegmentChange, refuses: ['bad_request', 'conflict'] }, async (body, loaded) => {
    const { title, description, filters } = body;
    const references = referencesIn(filters ?? []);
    const changed = await unlessTitleTaken(title ?? '', () =>
      db.transaction().execute(async (trx) => {
        // Another change may have been made while this body arrived, so the segment is read again.
        await lockRow(trx, 'workspaces', loaded.workspaceId);
        const stored = existing(await findSegment(trx, loaded.id), 'Segment', loaded.id);
        if (stored.isPrivate && title !== undefined && title !== stored.title) {
          throw badRequest(
            'The segment of a survey has the id of the survey as its title; leave the title out',
          );
        }
        const segment = {
          ...stored,
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
    states.purge(loaded);
    return changed;
  });

  segments.remove({ refuses: ['bad_request', 'conflict'] }, async (stored) => {
    if (stored.isPrivate) throw badRequest('This segment belongs to a survey and is deleted with it');
    await db.transaction().execute(async (trx) => {
      await lockRow(trx, 'workspaces', stored.workspaceId);
      // Without its segment a survey would not be shown to anybody.
      const surveys = await surveysOfSegments(trx, [stored.id], 1);
      if (surveys.size > 0) throw conflict('The segment is used by a survey; give that another one first');
      for await (const { id, filters } of eachSegment(trx, stored.workspaceId)) {
        if (!referencesOf(filters).includes(stored.id)) continue;
        throw conflict('Another segment refers to this one; change that first', { segmentId: id });
      }
      await deleteSegment(trx, stored.id);
    });
    states.purge(stored);
  });
};

function unlessTitleTaken<T>(title: string, write: () => Promise<T>): Promise<T> {
  const taken = conflict(`Segment with title ${title} already exists`);
  return unlessTaken(['segments.workspaceId', 'segments.title'], taken, write);
}
