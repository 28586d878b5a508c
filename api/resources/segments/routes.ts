/**
 * Segments on v1. Formbricks has no such routes; surveys refer to segments, and nothing else could create
 * them.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { conflict } from '#api/errors.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { Nullable, rowFields, scopeFields } from '#api/values/schemas.ts';
import { segments } from './store.ts';

const described = {
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
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
});

export const segmentRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/segments',
    param: 'segmentId',
    type: 'Segment',
    rows: segments,
    isInState: true,
    reply: SegmentReply,
    toReplies: (found) => found.map((segment) => ({ ...segment, isPrivate: false })),
  });

  resource.list();

  resource.create(NewSegment, (body, { id }) => {
    const { title, description = null, filters = [] } = body;
    return unlessTitleTaken(title, () =>
      segments.create(db, { ...newRow(context, id), title, description, filters }),
    );
  });

  resource.read();

  resource.change(SegmentChange, ({ title, description, filters }, loaded) =>
    unlessTitleTaken(title ?? '', () =>
      segments.change(context, loaded, 'Segment', (stored) => ({
        title: title ?? stored.title,
        description: description === undefined ? stored.description : description,
        filters: filters ?? stored.filters,
      })),
    ),
  );

  resource.remove(({ id, workspaceId }) =>
    inWorkspace(db, workspaceId, async (trx) => {
      // Without its segment a survey would be shown to everybody.
      const ofSegment = trx.selectFrom('surveys').select('id').where('segmentId', '=', id);
      const survey = await ofSegment.limit(1).executeTakeFirst();
      if (survey !== undefined)
        throw conflict('The segment is used by a survey; give that another one first');
      return segments.remove(trx, id);
    }),
  );
};

function unlessTitleTaken<T>(title: string, write: () => Promise<T>): Promise<T> {
  const taken = conflict(`Segment with title ${title} already exists`);
  return unlessTaken(['segments.workspaceId', 'segments.title'], taken, write);
}
