/** Checks a request for an upload, in the order in which clients see the errors, and grants it. */
import { type Static, Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { ApiError, badRequest, existing, invalidFields } from '#api/errors.ts';
import { findSurvey, type Survey } from '#api/resources/surveys/store.ts';
import { insertFile } from '#api/storage/files.ts';
import { type FileLocation, keyOf, pathOf } from '#api/storage/key.ts';
import { QuotaExceeded, type QuotaScope } from '#api/storage/quota.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { newUuid } from '#api/values/ids.ts';
import { Id, MapOf, Nullable, OneOf, scopeFields } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { cleanName, type SafeName, sentExtension, uniqueName } from './file-name.ts';
import { type Extension, extensions, isTypeOf, knownExtension, mimeTypeOf } from './file-types.ts';

const MEBIBYTE = 1_048_576;
export const PUBLIC_BYTES_MAX = 5 * MEBIBYTE;
export const PRIVATE_BYTES_MAX = 10 * MEBIBYTE;

const wanted = {
  fileName: Type.String({ pattern: '\\S', text: 'Required' }),
  fileType: Type.String({ pattern: '\\S', text: 'Required' }),
  allowedFileExtensions: Type.Optional(Nullable(Type.Array(OneOf(extensions)))),
};

export const ManagementGrantRequest = Type.Object({ ...wanted, ...scopeFields });
export const ClientGrantRequest = Type.Object({
  ...wanted,
  surveyId: Id,
  elementId: Type.Optional(Nullable(Type.String({ pattern: '^[A-Za-z0-9_-]{1,255}$' }))),
});

export const Grant = Type.Object({
  data: Type.Object({
    signedUrl: Type.String(),
    presignedFields: MapOf(Type.String()),
    updatedFileName: Type.String(),
    fileUrl: Type.String(),
  }),
});

interface CheckedFile {
  readonly name: SafeName | null;
  readonly fileName: string;
  readonly extension: Extension;
}

/** @throws ApiError invalid_fields with the first problem only */
export function checkFile(request: Static<typeof ManagementGrantRequest>): CheckedFile {
  const { fileName, fileType, allowedFileExtensions: allowed } = request;
  const sent = sentExtension(fileName);
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
  return { fileName, extension, name: cleanName(fileName, sent) };
}

/**
 * Checks whether this survey accepts the file, and up to which size. Old clients do not name an element. Then any
 * question of the survey may accept it.
 *
 * @returns the largest size
 * @throws ApiError
 */
export async function checkSurvey(
  { db }: Pick<Context, 'db'>,
  workspaceId: string,
  { surveyId, elementId }: Static<typeof ClientGrantRequest>,
  extension: Extension,
): Promise<number> {
  const survey = existing(await findSurvey(db, surveyId), 'Survey', surveyId);
  if (survey.workspaceId !== workspaceId) {
    throw badRequest('Survey does not belong to the workspace', { surveyId, workspaceId });
  }
  const uploads = uploadQuestions(survey);
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

function uploadQuestions({ content }: Survey) {
  return content.blocks.flatMap(({ elements }) =>
    elements.filter((element) => element.type === 'fileUpload'),
  );
}

/** Whether a survey names this extension. Surveys write extensions with and without a dot, in any case. */
function isSame(written: string, extension: Extension): boolean {
  return written.trim().toLowerCase().replace(/^\./, '') === extension;
}

interface GrantOptions {
  readonly workspaceId: string;
  readonly access: FileLocation['access'];
  readonly surveyId: string | null;
  readonly elementId: string | null;
  readonly bytesMax: number;
}

/** Stores a row for the file before granting it, so that every possible file is known. @throws ApiError */
export async function grantUpload(
  { db, storage, config, clock, random }: Pick<Context, 'db' | 'storage' | 'config' | 'clock' | 'random'>,
  { fileName, name, extension }: CheckedFile,
  { workspaceId, access, surveyId, elementId, bytesMax }: GrantOptions,
): Promise<Static<typeof Grant>> {
  if (name === null) throw badRequest('Invalid input', { fileName });
  const updatedFileName = uniqueName(name, newUuid(random));
  const element = surveyId !== null && elementId !== null ? { surveyId, elementId } : null;
  const location: FileLocation = { workspaceId, access, element, fileName: updatedFileName };
  const file = { location, surveyId, bytesMax, createdAt: toTimestamp(clock()) };
  await withQuotaErrors(insertFile(db, config.storageQuota, file));
  const { url, fields } = await withStorageErrors(
    storage.grant({ key: keyOf(location), contentType: mimeTypeOf(extension), bytesMax }),
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

/** Translates errors of the store, which are not the caller's fault. The log tells the operator what to do. */
export async function withStorageErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    const { fault } = error;
    throw fault === 'disk_error'
      ? new ApiError('internal_server_error', 'Internal server error', { cause: error })
      : new ApiError(
          'internal_server_error',
          'File storage is not configured correctly. Check the S3 settings; the log says what is wrong.',
          { details: { storage_error_code: fault }, cause: error },
        );
  }
}

export const quotaTexts: Readonly<Record<QuotaScope, string>> = {
  workspace:
    'This workspace has no room for this file. Delete files that are no longer needed, or ask the operator of this service for a larger quota.',
  total:
    'This service has no room for this file. Its operator has to raise the quota of all files, or delete some.',
};

async function withQuotaErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof QuotaExceeded)) throw error;
    const text = quotaTexts[error.scope];
    throw new ApiError('payload_too_large', text, { details: { error: text }, cause: error });
  }
}
