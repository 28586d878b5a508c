/**
 * Permissions to upload a file, with checks in the order in which clients see the errors.
 *
 * Callers: anybody, for private files of a survey, which the gateway limits per address. API keys and sessions with
 * the right to write, for public files; the gateway limits keys, the application sessions.
 */
import { type Static, Type } from 'typebox';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, existing, invalidFields } from '#api/errors.ts';
import { findSurvey } from '#api/resources/surveys/store.ts';
import { loadBodyWorkspace, loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { insertFile, refuseFull } from '#api/storage/files.ts';
import { extensionOf, type FileLocation, keyOf, pathOf } from '#api/storage/key.ts';
import { newUuid } from '#api/values/ids.ts';
import { Id, MapOf, Nullable, OneOf, scopeFields } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { cleanName, uniqueName } from './file-name.ts';
import { type Extension, extensions, isTypeOf, knownExtension, mimeTypes } from './file-types.ts';
import { withStorageErrors } from './storage-errors.ts';

const MEBIBYTE = 1_048_576;
const PUBLIC_BYTES_MAX = 5 * MEBIBYTE;
export const PRIVATE_BYTES_MAX = 10 * MEBIBYTE;

const wanted = {
  fileName: Type.String({ pattern: '\\S', text: 'Required' }),
  fileType: Type.String({ pattern: '\\S', text: 'Required' }),
  allowedFileExtensions: Type.Optional(Nullable(Type.Array(OneOf(extensions)))),
};
const ManagementRequest = Type.Object({ ...wanted, ...scopeFields });
const ClientRequest = Type.Object({
  ...wanted,
  surveyId: Id,
  elementId: Type.Optional(Nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{1,255}$' }))),
});
const Grant = Type.Object({
  data: Type.Object({
    signedUrl: Type.String(),
    presignedFields: MapOf(Type.String()),
    updatedFileName: Type.String(),
    fileUrl: Type.String(),
  }),
});
const summary = 'Ask for an upload: an address and the form fields that allow it';

export const clientGrantRoutes: Routes = async (app, { context }) => {
  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/storage`,
      {
        schema: {
          summary,
          params: Type.Object({ workspaceId: Type.String() }),
          body: ClientRequest,
          response: { 200: Grant },
        },
        onRequest: loadPathWorkspace(context),
      },
      async (request) => {
        const { body } = request;
        const { id: workspaceId } = workspaceOf(request);
        const { surveyId, elementId = null } = body;
        const extension = checkFile(body);
        const bytesMax = await checkSurvey(context, workspaceId, body, extension);
        const element = elementId === null ? null : { surveyId, elementId };
        const place = { workspaceId, access: 'private', element } as const;
        return grantUpload(context, body.fileName, extension, { place, surveyId, bytesMax });
      },
    );
  }
};

export const managementGrantRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v1/management/storage',
    {
      schema: { summary, body: ManagementRequest, response: { 200: Grant } },
      config: { limit: 'storage.upload' },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const place = { workspaceId: workspaceOf(request).id, access: 'public', element: null } as const;
      return grantUpload(context, request.body.fileName, checkFile(request.body), {
        ...{ place, surveyId: null, bytesMax: PUBLIC_BYTES_MAX },
      });
    },
  );
};

/** @throws ApiError invalid_fields with the first problem only */
function checkFile(request: Static<typeof ManagementRequest>): Extension {
  const { fileName, fileType, allowedFileExtensions: allowed } = request;
  const sent = extensionOf(fileName.trim());
  if (sent === null) throw invalidFields({ fileName: 'File name must have an extension' });
  const extension = knownExtension(sent);
  if (extension === null) {
    throw invalidFields({ fileName: 'File extension is not allowed for security reasons' });
  }
  if (!isTypeOf(extension, fileType)) {
    throw invalidFields({ fileType: "File type doesn't match the file extension" });
  }
  if (allowed && allowed.length > 0 && !allowed.includes(extension)) {
    const list = allowed.join(', ');
    throw invalidFields({ fileName: `File extension is not allowed, allowed extensions are: ${list}` });
  }
  return extension;
}

/**
 * Checks whether this survey accepts the file, and up to which size. Old clients do not name an element. Then any
 * question of the survey may accept it.
 *
 * @returns the largest size
 * @throws ApiError
 */
async function checkSurvey(
  { db }: Pick<Context, 'db'>,
  workspaceId: string,
  { surveyId, elementId }: Static<typeof ClientRequest>,
  extension: Extension,
): Promise<number> {
  const survey = existing(await findSurvey(db, surveyId), 'Survey', surveyId);
  if (survey.workspaceId !== workspaceId) {
    throw badRequest('Survey does not belong to the workspace', { surveyId, workspaceId });
  }
  const elements = survey.content.blocks.flatMap((block) => block.elements);
  const uploads = elements.filter((element) => element.type === 'fileUpload');
  if (uploads.length === 0) throw badRequest('Survey does not allow file uploads');
  const asked = elementId ? uploads.filter(({ id }) => id === elementId) : uploads;
  if (asked.length === 0) throw badRequest('Element does not allow file uploads');
  const fitting = asked.filter(({ allowedFileExtensions: allowed }) => {
    return !allowed || allowed.length === 0 || allowed.some((one) => isSame(one, extension));
  });
  if (fitting.length === 0) throw badRequest('File extension is not allowed for this element');
  const largest = Math.max(...fitting.map(({ maxSizeInMB }) => (maxSizeInMB ?? Infinity) * MEBIBYTE));
  return Math.floor(Math.min(PRIVATE_BYTES_MAX, largest));
}

/** Whether a survey names this extension. Surveys write extensions with and without a dot, in any case. */
function isSame(written: string, extension: Extension): boolean {
  return written.trim().toLowerCase().replace(/^\./, '') === extension;
}

interface GrantOptions {
  readonly place: Omit<FileLocation, 'fileName'>;
  readonly surveyId: string | null;
  readonly bytesMax: number;
}

/** Stores a row for the file before granting it, so that every possible file is known. @throws ApiError */
async function grantUpload(
  context: Context,
  fileName: string,
  extension: Extension,
  { place, surveyId, bytesMax }: GrantOptions,
): Promise<Static<typeof Grant>> {
  const { db, storage, config, clock, random } = context;
  const name = cleanName(fileName);
  if (name === null) throw badRequest('Invalid input', { fileName });
  const updatedFileName = uniqueName(name, newUuid(random));
  const location = { ...place, fileName: updatedFileName };
  await refuseFull(context, place.workspaceId, bytesMax);
  await insertFile(db, location, { surveyId, createdAt: toTimestamp(clock()) });
  const { url, fields } = await withStorageErrors(
    storage.grant({ key: keyOf(location), contentType: mimeTypes[extension], bytesMax }),
  );
  return {
    data: {
      signedUrl: url,
      presignedFields: { ...fields },
      updatedFileName,
      fileUrl: config.publicUrl + pathOf(location),
    },
  };
}
