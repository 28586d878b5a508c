/** Surveys, contacts and responses. Partial indexes contain only what is still to be done, so they stay small. */
import {
  flag,
  type Indexes,
  index,
  oneOf,
  optionalText,
  optionalUniqueText,
  ownedBy,
  referring,
  row,
  text,
  unique,
} from './schema-writer.ts';

export const surveys = {
  actionClasses: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    name: text,
    description: optionalText,
    type: oneOf<'code' | 'noCode'>(),
    key: optionalText,
    noCodeConfig: optionalText,
  },
  segments: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    title: text,
    description: optionalText,
    filters: text,
  },
  surveys: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    name: text,
    type: oneOf<'app' | 'website' | 'link'>(),
    status: oneOf<'draft' | 'scheduled' | 'inProgress' | 'paused' | 'completed'>(),
    createdBy: optionalText,
    slug: optionalUniqueText,
    segmentId: referring(optionalText, 'segments', 'set null'),
    /** Blocks, endings, settings, languages and triggers, which are read and written as a whole. */
    document: text,
    /** Copies of the document's dates, indexed for the scheduler. */
    publishOn: optionalText,
    closeOn: optionalText,
  },
  contacts: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    /** Id of the user in an app; null for an anonymous contact. */
    userId: optionalText,
  },
  contactAttributeKeys: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    key: text,
    name: text,
    description: text,
    /** Whether no two contacts of the workspace may have the same value. */
    isUnique: flag,
    /** Default keys come with the workspace, and cannot be deleted. */
    type: oneOf<'default' | 'custom'>(),
    dataType: oneOf<'string' | 'number' | 'date'>(),
  },
  contactAttributes: {
    ...row,
    contactId: ownedBy('contacts'),
    attributeKeyId: ownedBy('contactAttributeKeys'),
    value: text,
    /** Digest of the value if the key's values must be unique, else null. The value may be too long for an index. */
    uniqueDigest: optionalText,
  },
  displays: {
    ...row,
    surveyId: ownedBy('surveys'),
    contactId: referring(optionalText, 'contacts', 'cascade'),
  },
  responses: {
    ...row,
    /** Id of the workspace, copied from the survey, so that listing a workspace uses one index. */
    workspaceId: ownedBy('workspaces'),
    surveyId: ownedBy('surveys'),
    contactId: referring(optionalText, 'contacts', 'set null'),
    displayId: referring(optionalUniqueText, 'displays', 'set null'),
    endingId: optionalText,
    finished: flag,
    data: text,
    variables: text,
    ttc: text,
    meta: text,
    /** Attributes of the contact when the response was created. */
    contactAttributes: optionalText,
    singleUseId: optionalText,
    language: optionalText,
  },
};

export const indexesOfSurveys: Indexes = {
  actionClasses: [
    unique('workspaceId', 'name'),
    unique('workspaceId', 'key'),
    index('list', 'workspaceId', 'createdAt', 'id'),
  ],
  segments: [unique('workspaceId', 'title')],
  surveys: [
    index('list', 'workspaceId', 'updatedAt', 'id'),
    index('live', 'workspaceId', 'status', 'createdAt', 'id'),
    index('segmentId'),
    index('publishOn', 'status', 'publishOn'),
    index('closeOn', 'status', 'closeOn'),
  ],
  contacts: [unique('workspaceId', 'userId'), index('list', 'workspaceId', 'createdAt', 'id')],
  contactAttributeKeys: [unique('workspaceId', 'key')],
  contactAttributes: [
    unique('contactId', 'attributeKeyId'),
    index('list', 'attributeKeyId', 'createdAt', 'id'),
    unique('attributeKeyId', 'uniqueDigest'),
  ],
  displays: [index('surveyId', 'surveyId', 'createdAt'), index('contactId', 'contactId', 'createdAt')],
  responses: [
    unique('surveyId', 'singleUseId'),
    index('workspace', 'workspaceId', 'createdAt', 'id'),
    index('survey', 'surveyId', 'createdAt', 'id'),
    index('finished', 'surveyId', 'finished'),
    index('contactId', 'contactId', 'createdAt'),
    // With `createdAt`, these have all that a list in the order of changes needs, so skipped rows are not read.
    index('workspaceChanged', 'workspaceId', 'updatedAt', 'id', 'createdAt'),
    index('surveyChanged', 'surveyId', 'updatedAt', 'id', 'createdAt'),
  ],
};
