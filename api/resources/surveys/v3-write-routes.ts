/**
 * Writes surveys on v3.
 *
 * Callers: API keys and sessions with the right to write to the workspace, also for deletions.
 */
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { may } from '#api/auth/principal.ts';
import type { Context, Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { FieldError, invalidFields, routeNotFound, UNSUPPORTED_FIELD } from '#api/errors.ts';
import { paramsOf } from '#api/http/envelopes.ts';
import { validatorCompiler } from '#api/http/validation.ts';
import { outOfReach, v3Workspace } from '#api/resources/workspaces/scope.ts';
import { Id, MapOf, Nullable, OneOf, type ReplyOf } from '#api/values/schemas.ts';
import { removeSurvey } from './deletion.ts';
import { findSurvey, type Survey } from './store.ts';
import { type Operation, shapeIssues } from './v3-check.ts';
import { toSurveyResource } from './v3-reply.ts';
import { DocumentChange, NewDocument, SurveyDocument } from './v3-shapes.ts';
import { asDocument, readDraft } from './v3-write.ts';
import { archiveSurvey, insertNewSurvey, rewriteSurvey, saveSurvey, trySurvey } from './write.ts';

type Fields = Readonly<Record<string, unknown>>;

const url = '/api/v3/surveys';
const Params = Type.Object({ surveyId: Id });
const one = Type.Object({ data: SurveyDocument });

const Archived = Type.Object({
  data: Type.Object({ id: Type.String(), status: Type.String(), archivedAt: Nullable(Type.String()) }),
});

const Validation = Type.Object(
  {
    operation: OneOf(['create', 'patch']),
    surveyId: Type.Optional(Id),
    data: MapOf(Type.Unknown()),
  },
  {
    additionalProperties: false,
    description: '`surveyId` with `patch`. `data` is the body of that request.',
  },
);
const Verdict = Type.Object({
  data: Type.Object({
    valid: Type.Boolean(),
    operation: Type.String(),
    invalid_params: Type.Array(
      Type.Unsafe<object>(
        Type.Object({ name: Type.String(), reason: Type.String() }, { additionalProperties: true }),
      ),
    ),
    languages: Type.Optional(
      Type.Array(Type.Object({ code: Type.String(), default: Type.Boolean(), enabled: Type.Boolean() })),
    ),
  }),
});

/** Checks each element of a body against the shape of its type. The route's schema describes the same as one schema. */
function documentCompiler(operation: Operation): FastifySchemaCompiler<TSchema> {
  return (part) => {
    if (part.httpPart !== 'body') return validatorCompiler(part);
    return (value: unknown) => {
      const issues = shapeIssues(operation, value);
      return Object.keys(issues).length === 0 ? { value } : { error: invalidFields(issues) };
    };
  };
}

const invalidBodyMessage = 'Invalid survey document';
const creating = { invalidBodyMessage, refuses: ['forbidden', 'unprocessable_content'] } as const;
/** conflict: an app survey has its own segment, and another segment may have its title. */
const changing = { invalidBodyMessage, refuses: [...creating.refuses, 'conflict'] } as const;

export const v3SurveyWriteRoutes: Routes = async (app, { context }) => {
  app.post(
    url,
    {
      schema: { body: NewDocument, response: { 201: one } },
      validatorCompiler: documentCompiler('create'),
      config: creating,
    },
    async (request, reply) => {
      const survey = await asDocument(async () =>
        saveSurvey(context, await insertion(context, request, request.body)),
      );
      return reply
        .code(201)
        .header('location', `${url}/${survey.id}`)
        .send({ data: toSurveyResource(survey, null) });
    },
  );

  app.patch(
    `${url}/:surveyId`,
    {
      schema: { params: Params, body: DocumentChange, response: { 200: one } },
      validatorCompiler: documentCompiler('patch'),
      config: changing,
    },
    async (request) => {
      const { id } = await writableSurvey(context, request, request.params.surveyId);
      const survey = await asDocument(() => saveSurvey(context, rewriting(context, id, request.body)));
      return { data: toSurveyResource(found(survey), null) };
    },
  );

  app.delete(
    `${url}/:surveyId`,
    {
      schema: {
        params: Params,
        response: { 204: Type.Unsafe<undefined>({ type: 'null', description: 'Deleted.' }) },
      },
      config: { refuses: ['forbidden'] },
    },
    async (request, reply) => {
      const survey = await writableSurvey(context, request, request.params.surveyId);
      if (!(await removeSurvey(context, survey, request.log))) throw outOfReach();
      return reply.code(204).send(undefined);
    },
  );

  for (const action of ['archive', 'restore'] as const) {
    app.post(
      `${url}/:surveyId/${action}`,
      { schema: { params: Params, response: { 200: Archived } }, config: { refuses: ['forbidden'] } },
      async (request) => {
        const { id } = await writableSurvey(context, request, request.params.surveyId);
        const survey = found(await saveSurvey(context, (trx) => archiveSurvey(trx, context, id, action)));
        return { data: { id, status: survey.content.status, archivedAt: survey.archivedAt } };
      },
    );
  }

  // Formbricks has these routes. Without an entry here they would be read as ids of surveys, and get 405.
  for (const missing of ['generate', 'templates']) {
    app.route({
      method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
      url: `${url}/${missing}`,
      schema: { hide: true },
      async handler() {
        throw routeNotFound();
      },
    });
  }

  app.post(
    `${url}/validate`,
    {
      schema: { body: Validation, response: { 200: Verdict } },
      config: { refuses: ['forbidden', 'conflict'] },
    },
    async (request) => ({ data: await verdictOn(context, request, request.body) }),
  );
};

/** Checks a document as the route that writes it does, and writes nothing. */
async function verdictOn(
  context: Context,
  request: FastifyRequest,
  { data, operation, surveyId }: Static<typeof Validation>,
): Promise<ReplyOf<typeof Verdict>['data']> {
  if (operation === 'patch' && surveyId === undefined) throw invalidFields({ surveyId: 'Required' });
  if (operation === 'create' && surveyId !== undefined) {
    throw invalidFields({ surveyId: UNSUPPORTED_FIELD });
  }
  const stored = surveyId === undefined ? null : await writableSurvey(context, request, surveyId);
  try {
    const issues = shapeIssues(operation, data);
    if (Object.keys(issues).length > 0) throw invalidFields(issues);
    const survey = await asDocument(async () =>
      stored === null
        ? trySurvey(context, await insertion(context, request, data))
        : found(await trySurvey(context, rewriting(context, stored.id, data))),
    );
    const { languages } = toSurveyResource(survey, null);
    return { valid: true, operation, invalid_params: [], languages };
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    return { valid: false, operation, invalid_params: paramsOf(error) };
  }
}

/** @throws ApiError forbidden if there is none, or the caller may not write it */
async function writableSurvey({ db }: Context, request: FastifyRequest, id: string): Promise<Survey> {
  const survey = await findSurvey(db, id);
  if (survey === null || !may(principalOf(request), survey.workspaceId, 'write')) throw outOfReach();
  return survey;
}

async function insertion(
  context: Context,
  request: FastifyRequest,
  document: Fields,
): Promise<(trx: Database) => Promise<Survey>> {
  const workspace = await v3Workspace(context, request, String(document.workspaceId), 'write');
  const principal = principalOf(request);
  const createdBy = principal.kind === 'session' ? principal.userId : null;
  const { complete, content } = readDraft(context, document, null, createdBy);
  return (trx) => insertNewSurvey(trx, context, workspace, content, complete);
}

function rewriting(
  context: Context,
  id: string,
  document: Fields,
): (trx: Database) => Promise<Survey | null> {
  return (trx) =>
    rewriteSurvey(trx, context, id, (inside, stored) => {
      const { complete, content } = readDraft(context, document, stored);
      return complete(inside, { ...stored, content });
    });
}

/** @throws ApiError forbidden if it was deleted meanwhile */
function found(survey: Survey | null): Survey {
  if (survey === null) throw outOfReach();
  return survey;
}
