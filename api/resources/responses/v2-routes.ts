/** Responses on v2, for reading. Needs a key with read on the workspace. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import { LIST_PAGE_BYTES_MAX } from '#api/content-limits.ts';
import type { Context } from '#api/context.ts';
import { notFound } from '#api/errors.ts';
import { pageTooLarge } from '#api/http/pagination.ts';
import { ListMeta, type ListPage, listQuery, pageFrom } from '#api/http/v2-pagination.ts';
import { Id } from '#api/schemas.ts';
import { withAbsoluteFiles } from './file-answers.ts';
import { findResponse, type Response } from './store.ts';

const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });

const ResponseReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  finished: Type.Boolean(),
  surveyId: Type.String(),
  contactId: TextOrNull,
  endingId: TextOrNull,
  data: Type.Unknown(),
  variables: Type.Unknown(),
  ttc: Type.Unknown(),
  meta: Type.Unknown(),
  contactAttributes: Type.Unknown(),
  singleUseId: TextOrNull,
  language: TextOrNull,
  displayId: TextOrNull,
});

interface Filter {
  readonly workspaceIds: readonly string[];
  readonly surveyId: string | undefined;
  readonly contactId: string | undefined;
}

export const v2ResponseRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, config } = context;

  app.get(
    '/api/v2/management/responses',
    {
      schema: {
        querystring: Type.Object({
          ...listQuery,
          surveyId: Type.Optional(Id),
          contactId: Type.Optional(Id),
        }),
        response: { 200: Type.Object({ data: Type.Array(ResponseReply), meta: ListMeta }) },
      },
    },
    async (request) => {
      const page = pageFrom(request.query);
      const { surveyId, contactId } = request.query;
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const { total, responses } = await listResponses({ workspaceIds, surveyId, contactId }, page);
      return {
        data: responses.map((response) => toReply(response, config.publicUrl)),
        meta: { total, limit: page.limit, offset: page.skip },
      };
    },
  );

  app.get(
    '/api/v2/management/responses/:id',
    {
      schema: {
        params: Type.Object({ id: Id }),
        response: { 200: Type.Object({ data: ResponseReply }) },
      },
    },
    async (request) => {
      const response = await findResponse(db, request.params.id);
      if (response === null) throw notFound('Response', request.params.id);
      requireRight(request, response.workspaceId);
      return { data: toReply(response, config.publicUrl) };
    },
  );

  /** In the order that the page asks for, ties by id. With one workspace and createdAt this reads an index in its order. */
  async function listResponses({ workspaceIds, surveyId, contactId }: Filter, page: ListPage) {
    const field = page.filterDateField;
    let matching = db.selectFrom('responses').where('workspaceId', 'in', workspaceIds);
    if (surveyId !== undefined) matching = matching.where('surveyId', '=', surveyId);
    if (contactId !== undefined) matching = matching.where('contactId', '=', contactId);
    if (page.startDate !== null) matching = matching.where(field, '>=', page.startDate);
    if (page.endDate !== null) matching = matching.where(field, '<=', page.endDate);
    const { total } = await matching
      .select((select) => select.fn.countAll().as('total'))
      .executeTakeFirstOrThrow();
    const ids = await matching
      .select('id')
      .orderBy(page.sortBy, page.order)
      .orderBy('id', page.order)
      .limit(page.limit)
      .offset(page.skip)
      .execute();
    // At most 250, each by its primary key.
    const responses: Response[] = [];
    let bytes = 0;
    for (const { id } of ids) {
      const response = await findResponse(db, id);
      if (response === null) continue;
      bytes += Buffer.byteLength(JSON.stringify(response));
      if (bytes > LIST_PAGE_BYTES_MAX && responses.length > 0) throw pageTooLarge(responses.length);
      responses.push(response);
    }
    return { total: Number(total), responses };
  }
};

/** Not the v1 shape: the contact is an id, and there are no tags. */
function toReply(response: Response, publicUrl: string): Static<typeof ResponseReply> {
  const { workspaceId: _, ...shown } = response;
  return { ...shown, data: withAbsoluteFiles(response.data, publicUrl) };
}
