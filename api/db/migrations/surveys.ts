/** Surveys, contacts and responses. Partial indexes contain only what is still to be done, so they stay small. */
import {
  flag,
  number,
  oneOf,
  optionalText,
  optionalUniqueText,
  ownedBy,
  referring,
  row,
  table,
  text,
} from './schema-writer.ts';

export const surveys = {
  actionClasses: table(
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      name: text,
      description: optionalText,
      type: oneOf<'code' | 'noCode'>(),
      key: optionalText,
      noCodeConfig: optionalText,
    },
    {
      unique: [
        ['workspaceId', 'name'],
        ['workspaceId', 'key'],
      ],
      indexes: { list: { columns: ['workspaceId', 'createdAt', 'id'] } },
    },
  ),
  segments: table(
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      title: text,
      description: optionalText,
      filters: text,
    },
    { unique: [['workspaceId', 'title']] },
  ),
  surveys: table(
    {
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
    {
      indexes: {
        list: { columns: ['workspaceId', 'updatedAt', 'id'] },
        live: { columns: ['workspaceId', 'status', 'createdAt', 'id'] },
        segmentId: { columns: ['segmentId'] },
        publishOn: { columns: ['status', 'publishOn'] },
        closeOn: { columns: ['status', 'closeOn'] },
      },
    },
  ),
  /** Numbers of responses, which triggers keep. The numbers of a survey are the sums of its rows. */
  responseCounts: table(
    {
      surveyId: ownedBy('surveys'),
      /** Tells rows of a survey apart, which different connections change. */
      part: number,
      responses: number,
      finished: number,
    },
    { primary: ['surveyId', 'part'] },
  ),
  contacts: table(
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      /** Id of the user in an app; null for an anonymous contact. */
      userId: optionalText,
    },
    {
      unique: [['workspaceId', 'userId']],
      indexes: { list: { columns: ['workspaceId', 'createdAt', 'id'] } },
    },
  ),
  contactAttributeKeys: table(
    {
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
    { unique: [['workspaceId', 'key']] },
  ),
  contactAttributes: table(
    {
      ...row,
      contactId: ownedBy('contacts'),
      attributeKeyId: ownedBy('contactAttributeKeys'),
      value: text,
      /** Digest of the value if the key's values must be unique, else null. The value may be too long for an index. */
      uniqueDigest: optionalText,
    },
    {
      unique: [['contactId', 'attributeKeyId']],
      indexes: {
        list: { columns: ['attributeKeyId', 'createdAt', 'id'] },
        unique: {
          columns: ['attributeKeyId', 'uniqueDigest'],
          isUnique: true,
          only: [['uniqueDigest', 'is not', null]],
        },
      },
    },
  ),
  displays: table(
    {
      ...row,
      surveyId: ownedBy('surveys'),
      contactId: referring(optionalText, 'contacts', 'cascade'),
    },
    {
      indexes: {
        surveyId: { columns: ['surveyId', 'createdAt'] },
        contactId: { columns: ['contactId', 'createdAt'] },
      },
    },
  ),
  responses: table(
    {
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
    {
      unique: [['surveyId', 'singleUseId']],
      indexes: {
        workspace: { columns: ['workspaceId', 'createdAt', 'id'] },
        survey: { columns: ['surveyId', 'createdAt', 'id'] },
        finished: { columns: ['surveyId', 'finished'] },
        contactId: { columns: ['contactId', 'createdAt'] },
        // With `createdAt`, these have all that a list in the order of changes needs, so skipped rows are not read.
        workspaceChanged: { columns: ['workspaceId', 'updatedAt', 'id', 'createdAt'] },
        surveyChanged: { columns: ['surveyId', 'updatedAt', 'id', 'createdAt'] },
      },
    },
  ),
};
