/** What v3 lists of one workspace take and tell: the oldest first, ties by id, pages by cursor. */
import { Type } from 'typebox';
import { Id } from '#api/schemas.ts';

export const LIMIT_DEFAULT = 50;
export const SORTED_BY = 'createdAt';

export const WorkspaceListQuery = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });
export const CursorMeta = Type.Object({ limit: Type.Integer(), nextCursor: TextOrNull });
