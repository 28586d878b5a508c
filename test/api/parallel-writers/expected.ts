/** The expected results of every operation that writes, for twelve concurrent writers with the same request. */
import type { Operation } from '#test/support/description.ts';

/**
 * - `each`: every request creates its own row.
 * - `same`: all succeed, and the final state is that of one of them.
 * - `once`: one succeeds; the others are refused, because it is taken, used or gone.
 * - `some`: at least one succeeds, the others are refused.
 */
export type Expected = 'each' | 'same' | 'once' | 'some';

const client = ['/api/v1/client/{workspaceId}', '/api/v2/client/{workspaceId}'];
const management = '/api/v1/management';
const responses = [`${management}/responses`, '/api/v1/responses'];
const surveys = [`${management}/surveys`, '/api/v1/surveys'];

const listed: Readonly<Record<Expected, readonly string[]>> = {
  each: [
    ...client.flatMap((url) => [`POST ${url}/displays`, `POST ${url}/responses`, `POST ${url}/storage`]),
    ...surveys.map((url) => `POST ${url}`),
    ...responses.map((url) => `POST ${url}`),
    `POST ${management}/storage`,
    'POST /api/v1/webhooks',
    'POST /api/v1/organizations/{organizationId}/workspaces',
    'POST /api/v2/management/responses',
    'POST /api/v2/management/webhooks',
  ],
  same: [
    ...client.flatMap((url) => [`POST ${url}/user`, `PUT ${url}/responses/{responseId}`]),
    'POST /api/v1/client/{workspaceId}/surveys/{surveyId}/pin',
    'PUT /api/v1/client/{workspaceId}/contacts/{userId}/attributes',
    'PUT /api/v1/client/{workspaceId}/people/{userId}/attributes',
    'GET /api/v1/client/{workspaceId}/identify/contacts/{userId}',
    'GET /api/v1/client/{workspaceId}/identify/people/{userId}',
    'GET /api/v1/client/{workspaceId}/app/people/{userId}',
    'PUT /api/v1/client/{workspaceId}/displays/{displayId}',
    ...surveys.map((url) => `PUT ${url}/{surveyId}`),
    ...responses.map((url) => `PUT ${url}/{responseId}`),
    `POST ${management}/surveys/{surveyId}/link-emails`,
    `PUT ${management}/action-classes/{actionClassId}`,
    `PUT ${management}/segments/{segmentId}`,
    `PUT ${management}/contact-attribute-keys/{contactAttributeKeyId}`,
    `PUT ${management}/workspaces/{workspaceId}`,
    'POST /api/v1/license/recheck',
    'PUT /api/v2/management/responses/{id}',
    'PUT /api/v2/management/webhooks/{id}',
    'PUT /api/v2/management/contact-attribute-keys/{id}',
    'POST /api/auth/callback/credentials',
    'POST /api/auth/signout',
    // S3 answers in this way also if there is no such file.
    'DELETE /storage/{workspaceId}/{accessType}/{fileName}',
  ],
  once: [
    `POST ${management}/action-classes`,
    `POST ${management}/segments`,
    `POST ${management}/languages`,
    `POST ${management}/contact-attribute-keys`,
    `POST ${management}/attribute-classes`,
    'POST /api/v2/management/contact-attribute-keys',
    'POST /api/v2/management/contacts',
    'POST /api/auth/callback/token',
    ...surveys.map((url) => `DELETE ${url}/{surveyId}`),
    ...responses.map((url) => `DELETE ${url}/{responseId}`),
    `DELETE ${management}/action-classes/{actionClassId}`,
    `DELETE ${management}/segments/{segmentId}`,
    `DELETE ${management}/languages/{languageId}`,
    `DELETE ${management}/contacts/{contactId}`,
    `DELETE ${management}/people/{personId}`,
    `DELETE ${management}/contact-attribute-keys/{contactAttributeKeyId}`,
    `DELETE ${management}/attribute-classes/{attributeClassId}`,
    'DELETE /api/v1/webhooks/{webhookId}',
    'DELETE /api/v2/management/responses/{id}',
    'DELETE /api/v2/management/webhooks/{id}',
    'DELETE /api/v2/management/contact-attribute-keys/{id}',
  ],
  some: [
    // Uploads with one grant that arrive at the same time replace each other; later ones are refused.
    'POST /api/v1/client/{workspaceId}/storage/upload',
  ],
};

export const expected: ReadonlyMap<string, Expected> = new Map(
  Object.entries(listed).flatMap(([kind, names]) => names.map((name) => [name, kind as Expected] as const)),
);

/** Reads that write, because they create a missing contact. */
const writingReads = /\/identify\/|\/app\/people\//;

export function isWrite({ method, path }: Operation): boolean {
  return method !== 'GET' || writingReads.test(path);
}
