/** What a segment is made of. */
import { Type } from 'typebox';
import { Nullable, scopeFields } from '#api/schemas.ts';

const described = {
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
  /** Held to their operators separately, see filters.ts. */
  filters: Type.Optional(Type.Array(Type.Unknown())),
};
const Title = Type.String({ minLength: 1, maxLength: 255 });

export const NewSegment = Type.Object({ ...scopeFields, title: Title, ...described });
export const SegmentChange = Type.Object({ title: Type.Optional(Title), ...described });

export const SegmentReply = Type.Object({
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
