/**
 * The text of the one statement by which a response is written that comes alone (lone-write.ts). All that was read before,
 * and what the response refers to, is looked at again in it.
 */
import { type CompiledQuery, type ExpressionBuilder, type Kysely, sql } from 'kysely';
import { isPostgres, jsonObject, surveyVersion } from '#api/db/dialect.ts';
import type { Database } from '#api/db/schema.ts';
import { webhooksOf } from '#api/resources/surveys/store.ts';
import type { toRow } from './store.ts';

/** Whom a response is from: a contact of its workspace, if there is one with this value. */
export interface Respondent {
  readonly by: 'id' | 'userId';
  readonly value: string;
}

/** Parameters of the statement, by name. */
export type Values = Omit<ReturnType<typeof toRow>, 'contactId' | 'contactAttributes'> & {
  readonly version: string;
  readonly scopeId: string;
  readonly respondent: string;
};

export interface Variant {
  readonly respondentBy: Respondent['by'] | null;
  /** Found by the id that older clients know, which may change; the other one cannot. */
  readonly isLegacyScope: boolean;
  readonly hasDisplay: boolean;
}

/** Making the text takes longer than the statement. */
const compiled = new Map<string, CompiledQuery>();

/** @returns with the names of its parameters in their places */
export function compiledInsert(db: Kysely<Database>, variant: Variant): CompiledQuery {
  const { hasDisplay, isLegacyScope, respondentBy } = variant;
  const key = `${isPostgres(db)} ${respondentBy} ${isLegacyScope} ${hasDisplay}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const made = insertQuery(db.withoutPlugins(), variant).compile();
  compiled.set(key, made);
  return made;
}

const texts = [
  ...(['id', 'createdAt', 'updatedAt', 'workspaceId', 'surveyId', 'displayId', 'endingId', 'data'] as const),
  ...(['variables', 'ttc', 'meta', 'singleUseId', 'language'] as const),
] satisfies readonly (keyof Values)[];

const parameter = (name: keyof Values) => sql<string>`${name}`;

type OfSurvey = ExpressionBuilder<Database, 'surveys'>;

function insertQuery(db: Kysely<Database>, { hasDisplay, isLegacyScope, respondentBy }: Variant) {
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
      const found = isLegacyScope ? unchanged.where(hasScope) : unchanged;
      const fits = hasDisplay ? found.where((survey) => hasFittingDisplay(survey, respondentBy)) : found;
      if (respondentBy === null) {
        return fits.select([sql<null>`null`.as('contactId'), sql<null>`null`.as('contactAttributes')]);
      }
      // A join with the contacts takes SQLite half as long again as the whole statement.
      return fits
        .select((survey) => contactsOf(survey, respondentBy).select('contacts.id').as('contactId'))
        .select((survey) =>
          contactsOf(survey, respondentBy)
            .select((contact) => attributesOf(db, contact).as('json'))
            .as('contactAttributes'),
        );
    });
}

function hasScope({ exists, selectFrom }: OfSurvey) {
  return exists(
    selectFrom('workspaces')
      .select('workspaces.id')
      .whereRef('workspaces.id', '=', 'surveys.workspaceId')
      .where('workspaces.legacyEnvironmentId', '=', parameter('scopeId')),
  );
}

/** The respondent, or nobody. */
function contactsOf({ selectFrom }: OfSurvey, by: Respondent['by']) {
  return selectFrom('contacts')
    .whereRef('contacts.workspaceId', '=', 'surveys.workspaceId')
    .where(`contacts.${by}`, '=', parameter('respondent'));
}

/** JSON, also where nothing is known of the contact. */
function attributesOf(db: Kysely<Database>, { selectFrom }: ExpressionBuilder<Database, 'contacts'>) {
  const attributes = selectFrom('contactAttributes')
    .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .select(
      jsonObject(db, sql.ref('contactAttributeKeys.key'), sql.ref('contactAttributes.value')).as('json'),
    )
    .whereRef('contactAttributes.contactId', '=', 'contacts.id');
  return sql<string>`coalesce(${attributes}, '{}')`;
}

/** Of the survey, and of nobody else. That no response has it yet is for its unique index to say. */
function hasFittingDisplay(survey: OfSurvey, respondentBy: Respondent['by'] | null) {
  const display = survey
    .selectFrom('displays')
    .select('displays.id')
    .where('displays.id', '=', parameter('displayId'))
    .whereRef('displays.surveyId', '=', 'surveys.id');
  if (respondentBy === null) return survey.exists(display);
  return survey.exists(
    display.where(({ exists, not }) =>
      not(
        exists(
          contactsOf(survey, respondentBy)
            .select('contacts.id')
            .whereRef('contacts.id', '<>', sql.ref('displays.contactId')),
        ),
      ),
    ),
  );
}
