/** Surveys, contacts and responses. Partial indexes contain only what is still to be done, so they stay small. */
import { sql } from 'kysely';
import {
  number,
  optionalText,
  optionalUniqueText,
  ownedBy,
  referring,
  row,
  type SchemaWriter,
  text,
} from './schema-writer.ts';
import { createUniqueDigest, uniqueUnlessDigested } from './unique-digests.ts';

export async function createSurveys(write: SchemaWriter): Promise<void> {
  await write.table(
    'actionClasses',
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      name: text,
      description: optionalText,
      type: text,
      key: optionalText,
      noCodeConfig: optionalText,
    },
    { unique: [['workspaceId', 'name'], ...uniqueUnlessDigested(write, ['workspaceId', 'key'])] },
  );
  await createUniqueDigest(write, 'actionClasses', 'workspaceId', 'key');
  await write.index('actionClasses', 'list', ['workspaceId', 'createdAt', 'id']);
  await write.table(
    'segments',
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      title: text,
      description: optionalText,
      isPrivate: number,
      filters: text,
    },
    { unique: [['workspaceId', 'title']] },
  );
  await write.table('surveys', {
    ...row,
    workspaceId: ownedBy('workspaces'),
    name: text,
    type: text,
    status: text,
    createdBy: optionalText,
    slug: optionalUniqueText,
    segmentId: referring(optionalText, 'segments', 'set null'),
    document: text,
    publishOn: optionalText,
    closeOn: optionalText,
  });
  await write.index('surveys', 'list', ['workspaceId', 'updatedAt', 'id']);
  await write.index('surveys', 'live', ['workspaceId', 'status', 'createdAt', 'id']);
  await write.index('surveys', 'segmentId', ['segmentId']);
  await write.index('surveys', 'publishOn', ['status', 'publishOn']);
  await write.index('surveys', 'closeOn', ['status', 'closeOn']);
  await write.table(
    'surveyTriggers',
    { surveyId: ownedBy('surveys'), actionClassId: ownedBy('actionClasses'), position: number },
    { primary: ['surveyId', 'actionClassId'] },
  );
  await write.index('surveyTriggers', 'actionClassId', ['actionClassId']);
  await write.table(
    'surveyLanguages',
    {
      surveyId: ownedBy('surveys'),
      languageId: ownedBy('languages'),
      isDefault: number,
      isEnabled: number,
      position: number,
    },
    { primary: ['surveyId', 'languageId'] },
  );
  await write.index('surveyLanguages', 'languageId', ['languageId']);
  await write.table(
    'responseCounts',
    { surveyId: ownedBy('surveys'), part: number, responses: number, finished: number },
    { primary: ['surveyId', 'part'] },
  );
}

export async function createContacts(write: SchemaWriter): Promise<void> {
  await write.table(
    'contacts',
    { ...row, workspaceId: ownedBy('workspaces'), userId: optionalText },
    { unique: [['workspaceId', 'userId']] },
  );
  await write.index('contacts', 'list', ['workspaceId', 'createdAt', 'id']);
  await write.table(
    'contactAttributeKeys',
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      key: text,
      name: text,
      description: text,
      isUnique: number,
      type: text,
      dataType: text,
      isArchived: number,
    },
    { unique: [['workspaceId', 'key']] },
  );
  await write.table(
    'contactAttributes',
    {
      ...row,
      contactId: ownedBy('contacts'),
      attributeKeyId: ownedBy('contactAttributeKeys'),
      value: text,
      uniqueDigest: optionalText,
    },
    { unique: [['contactId', 'attributeKeyId']] },
  );
  await write.index('contactAttributes', 'list', ['attributeKeyId', 'createdAt', 'id']);
  const byKey = write.schema
    .createIndex('contactAttributes_value')
    .on('contactAttributes')
    .column('attributeKeyId');
  await (write.isPostgres
    ? byKey.expression(sql`hashtextextended("value", 0)`)
    : byKey.column('value')
  ).execute();
  // The values themselves may be too long for an index.
  await write.schema
    .createIndex('contactAttributes_unique')
    .unique()
    .on('contactAttributes')
    .columns(['attributeKeyId', 'uniqueDigest'])
    .where('uniqueDigest', 'is not', null)
    .execute();
}

export async function createResponses(write: SchemaWriter): Promise<void> {
  await write.table('displays', {
    ...row,
    surveyId: ownedBy('surveys'),
    contactId: referring(optionalText, 'contacts', 'cascade'),
  });
  await write.index('displays', 'surveyId', ['surveyId', 'createdAt']);
  await write.index('displays', 'contactId', ['contactId', 'createdAt']);
  await write.table(
    'responses',
    {
      ...row,
      workspaceId: ownedBy('workspaces'),
      surveyId: ownedBy('surveys'),
      contactId: referring(optionalText, 'contacts', 'set null'),
      displayId: referring(optionalUniqueText, 'displays', 'set null'),
      endingId: optionalText,
      finished: number,
      data: text,
      variables: text,
      ttc: text,
      meta: text,
      contactAttributes: optionalText,
      singleUseId: optionalText,
      language: optionalText,
      emailDigest: optionalText,
    },
    { unique: uniqueUnlessDigested(write, ['surveyId', 'singleUseId']) },
  );
  await createUniqueDigest(write, 'responses', 'surveyId', 'singleUseId');
  await write.index('responses', 'workspace', ['workspaceId', 'createdAt', 'id']);
  await write.index('responses', 'survey', ['surveyId', 'createdAt', 'id']);
  await write.index('responses', 'finished', ['surveyId', 'finished']);
  await write.index('responses', 'contactId', ['contactId', 'createdAt']);
  // With `createdAt`, these have all that a list in the order of changes needs, so skipped rows are not read.
  await write.index('responses', 'workspaceChanged', ['workspaceId', 'updatedAt', 'id', 'createdAt']);
  await write.index('responses', 'surveyChanged', ['surveyId', 'updatedAt', 'id', 'createdAt']);
  // If a survey verifies addresses, each respondent can finish one response.
  await write.schema
    .createIndex('responses_emailDigest')
    .unique()
    .on('responses')
    .columns(['surveyId', 'emailDigest'])
    .where(sql.ref('finished'), '=', 1)
    .where('emailDigest', 'is not', null)
    .execute();
}
