/** The shape of a response on the v1 management API. Pure. */
import { withAbsoluteFiles } from '#api/values/absolute-files.ts';
import type { ResponseWithRelations } from './store.ts';

export function toResponseReply(response: ResponseWithRelations, publicUrl: string) {
  const { contact, workspaceId } = response;
  return {
    id: response.id,
    createdAt: response.createdAt,
    updatedAt: response.updatedAt,
    surveyId: response.surveyId,
    finished: response.finished,
    endingId: response.endingId,
    displayId: response.displayId,
    data: withAbsoluteFiles(response.data, publicUrl),
    variables: response.variables,
    ttc: response.ttc,
    meta: response.meta,
    // Only a contact with a user id is a person.
    person:
      contact === null || contact.userId === null
        ? null
        : {
            id: contact.id,
            userId: contact.userId,
            environmentId: workspaceId,
            workspaceId,
            attributes: contact.attributes,
            createdAt: contact.createdAt,
            updatedAt: contact.updatedAt,
          },
    personAttributes: response.contactAttributes,
    contact:
      contact === null
        ? null
        : { id: contact.id, ...(contact.userId === null ? {} : { userId: contact.userId }) },
    contactAttributes: response.contactAttributes,
    singleUseId: response.singleUseId,
    language: response.language,
    // Clients expect a list. Nothing writes tags.
    tags: [],
  };
}
