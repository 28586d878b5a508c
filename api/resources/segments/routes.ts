/**
 * Segments on v1. Formbricks has no such routes; surveys refer to segments, and nothing else could create
 * them.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { badRequest, conflict } from '#api/errors.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { Nullable, rowFields, scopeFields } from '#api/values/schemas.ts';
import { checkFilters, referencesIn, referencesOf } from './references.ts';
import { eachSegment, type Segment, segments, surveysOfSegments } from './store.ts';

/** Maximum number in a page, because each segment has up to 500 filters. */
const LIST_MAX = 500;
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

export const SegmentReply = Type.Object({
  ...rowFields,
  title: Type.String(),
  description: Nullable(Type.String()),
  isPrivate: Type.Boolean(),
  filters: Type.Unknown(),
  surveys: Type.Array(Type.String()),
});

export const segmentRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/segments',
    param: 'segmentId',
    type: 'Segment',
    rows: segments,
    isInState: true,
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

  resource.list(LIST_MAX);

  resource.create(NewSegment, async (body, { id }) => {
    const { title, description = null, filters = [] } = body;
    const made: Segment = { ...newRow(context, id), title, description, isPrivate: false, filters };
    const references = referencesIn(filters);
    await unlessTitleTaken(title, () =>
      inWorkspace(db, id, async (trx) => {
        await checkFilters(trx, made, references);
        await segments.refuseFull(trx, id);
        await segments.insert(trx, made);
      }),
    );
    return made;
  });

  resource.read();

  resource.change(SegmentChange, async (body, loaded) => {
    const { title, description, filters } = body;
    const references = referencesIn(filters ?? []);
    return unlessTitleTaken(title ?? '', () =>
      segments.change(context, loaded, 'Segment', async (stored, trx) => {
        if (stored.isPrivate && title !== undefined && title !== stored.title) {
          throw badRequest(
            'The segment of a survey has the id of the survey as its title; leave the title out',
          );
        }
        const changed = {
          ...stored,
          title: title ?? stored.title,
          description: description === undefined ? stored.description : description,
          filters: filters ?? stored.filters,
        };
        await checkFilters(trx, changed, references);
        return changed;
      }),
    );
  });

  resource.remove(async ({ id, workspaceId, isPrivate }) => {
    if (isPrivate) throw badRequest('This segment belongs to a survey and is deleted with it');
    return inWorkspace(db, workspaceId, async (trx) => {
      // Without its segment a survey would not be shown to anybody.
      const surveys = await surveysOfSegments(trx, [id], 1);
      if (surveys.size > 0) throw conflict('The segment is used by a survey; give that another one first');
      for await (const other of eachSegment(trx, workspaceId)) {
        if (!referencesOf(other.filters).includes(id)) continue;
        throw conflict('Another segment refers to this one; change that first', { segmentId: other.id });
      }
      return segments.remove(trx, id);
    });
  });
};

function unlessTitleTaken<T>(title: string, write: () => Promise<T>): Promise<T> {
  const taken = conflict(`Segment with title ${title} already exists`);
  return unlessTaken(['segments.workspaceId', 'segments.title'], taken, write);
}
