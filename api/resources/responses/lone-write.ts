/**
 * Most responses come alone: no webhook hears of them, they end no survey, name no file, and follow no display. Such a one
 * is written by one statement, which looks in the same moment whether all that was read before is still so. A transaction
 * would ask the database five times for that, and hold a connection for as long.
 */
import { type CompiledQuery, type Kysely, sql } from 'kysely';
import { isPostgres, jsonObject, surveyVersion } from '#api/db/dialect.ts';
import type { Database } from '#api/db/schema.ts';
import { type AnsweredSurvey, webhooksOf } from '#api/resources/surveys/store.ts';
import { namesFiles } from '#api/storage/claims.ts';
import { type Response, toRow } from './store.ts';

export function comesAlone(
  survey: AnsweredSurvey,
  response: Pick<Response, 'data' | 'displayId' | 'finished' | 'singleUseId'>,
  emailDigest: string | null,
): boolean {
  const { data, displayId, finished, singleUseId } = response;
  return (
    mayComeAlone(survey) &&
    !(finished && survey.content.followUps.length > 0) &&
    displayId === null &&
    singleUseId === null &&
    emailDigest === null &&
    !namesFiles(data)
  );
}

/** As far as it depends on the survey alone. */
export function mayComeAlone({ content, hasWebhooks }: AnsweredSurvey): boolean {
  return !hasWebhooks && content.autoComplete === null;
}

/** Whom a response is from: a contact of its workspace, if there is one with this value. */
export interface Respondent {
  readonly by: 'id' | 'userId';
  readonly value: string;
}

export type LoneResponse = Omit<Response, 'contactId' | 'contactAttributes'>;

/** Parameters of the statement, by name. */
type Values = Omit<ReturnType<typeof toRow>, 'contactId' | 'contactAttributes'> & {
  readonly version: string;
  readonly scopeId: string;
  readonly respondent: string;
};

/**
 * One statement for a response that nothing else is written with, and for what is known of its contact.
 *
 * @param respondent null: nobody. A contact that there is none of is left out
 * @param survey as it was read, which may be a while ago
 * @param scopeId the id of its workspace under which it was found, one of two
 * @returns false: it is another survey now or has gone, or its workspace has a webhook or another id
 */
export async function insertLoneResponse(
  db: Kysely<Database>,
  response: LoneResponse,
  respondent: Respondent | null,
  { version, workspaceId }: AnsweredSurvey,
  scopeId: string,
): Promise<boolean> {
  const { contactId: _, contactAttributes: __, ...row } = toRow({ ...response, ...nobody });
  const values: Values = { ...row, version, scopeId, respondent: respondent?.value ?? '' };
  const { parameters, ...query } = compiledInsert(db, {
    respondentBy: respondent?.by ?? null,
    isLegacyScope: scopeId !== workspaceId,
  });
  const { numAffectedRows } = await db.executeQuery({
    ...query,
    parameters: parameters.map((name) => Reflect.get(values, String(name))),
  });
  return numAffectedRows === 1n;
}

const nobody = { contactId: null, contactAttributes: null };

interface Variant {
  readonly respondentBy: Respondent['by'] | null;
  /** Found by the id that older clients know, which may change; the other one cannot. */
  readonly isLegacyScope: boolean;
}

/** Making the text takes longer than the statement. */
const compiled = new Map<string, CompiledQuery>();

/** @returns with the names of its parameters in their places */
function compiledInsert(db: Kysely<Database>, { respondentBy, isLegacyScope }: Variant): CompiledQuery {
  const key = `${isPostgres(db)} ${respondentBy} ${isLegacyScope}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const made = insertQuery(db.withoutPlugins(), { respondentBy, isLegacyScope }).compile();
  compiled.set(key, made);
  return made;
}

const texts = [
  ...(['id', 'createdAt', 'updatedAt', 'workspaceId', 'surveyId', 'displayId', 'endingId', 'data'] as const),
  ...(['variables', 'ttc', 'meta', 'singleUseId', 'language'] as const),
] satisfies readonly (keyof Values)[];

const parameter = (name: keyof Values) => sql<string>`${name}`;

function insertQuery(db: Kysely<Database>, { respondentBy, isLegacyScope }: Variant) {
  return db
    .insertInto('responses')
    .columns([...texts, 'finished', 'contactId', 'contactAttributes'])
    .expression(({ selectFrom }) => {
      const unchanged = selectFrom('surveys')
        .select(texts.map((name) => parameter(name).as(name)))
        // A number among parameters of unknown types.
        .select(sql<0 | 1>`cast(${parameter('finished')} as integer)`.as('finished'))
        .where('surveys.id', '=', parameter('surveyId'))
        .where(surveyVersion(db), '=', parameter('version'))
        .where((survey) => survey.not(webhooksOf(survey)));
      const found = !isLegacyScope
        ? unchanged
        : unchanged.where(({ exists, selectFrom }) =>
            exists(
              selectFrom('workspaces')
                .select('workspaces.id')
                .whereRef('workspaces.id', '=', 'surveys.workspaceId')
                .where('workspaces.legacyEnvironmentId', '=', parameter('scopeId')),
            ),
          );
      if (respondentBy === null) {
        return found.select([sql<null>`null`.as('contactId'), sql<null>`null`.as('contactAttributes')]);
      }
      return found
        .leftJoin('contacts', (join) =>
          join
            .onRef('contacts.workspaceId', '=', 'surveys.workspaceId')
            .on(`contacts.${respondentBy}`, '=', parameter('respondent')),
        )
        .select('contacts.id as contactId')
        .select(({ selectFrom }) => {
          const attributes = selectFrom('contactAttributes')
            .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
            .select(
              jsonObject(db, sql.ref('contactAttributeKeys.key'), sql.ref('contactAttributes.value')).as(
                'json',
              ),
            )
            .whereRef('contactAttributes.contactId', '=', 'contacts.id');
          return sql<
            string | null
          >`case when ${sql.ref('contacts.id')} is not null then coalesce(${attributes}, '{}') end`.as(
            'contactAttributes',
          );
        });
    });
}
