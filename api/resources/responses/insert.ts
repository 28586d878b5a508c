/**
 * Inserts a new response. The statement itself looks up the contact, copies the contact's attributes and checks the
 * display, so these rules are stated once, and most responses need neither another statement nor a transaction.
 */
import { type CompiledQuery, type ExpressionBuilder, sql } from 'kysely';
import { isPostgres, jsonObject } from '#api/db/dialect.ts';
import type { Database, Tables } from '#api/db/schema.ts';
import { versionOf } from '#api/resources/surveys/answered.ts';
import { type Response, toRow } from './store.ts';

/** The contact of the workspace that has this id or user id. If there is none, the response is anonymous. */
export interface Respondent {
  readonly by: 'id' | 'userId';
  readonly value: string;
}

export interface Insertion {
  readonly response: Omit<Response, 'contactId' | 'contactAttributes'>;
  readonly respondent: Respondent | null;
  /** See `respondentDigest`. */
  readonly emailDigest: string | null;
  /** Inserts nothing if the survey has another version by now. null if any version will do. */
  readonly version: string | null;
}

/**
 * @returns null if it inserted nothing: the survey was deleted or has another version, or the display does not fit
 * @throws the driver's unique violation if the display has a response, the single-use id was used, or the respondent
 * has finished another response
 */
export async function insertResponse(db: Database, insertion: Insertion): Promise<Response | null> {
  const { rows } = await db.executeQuery(bind(insertQuery(db, insertion), insertion));
  const [made] = rows;
  if (made === undefined) return null;
  const { contactAttributes, contactId } = made;
  return {
    ...insertion.response,
    contactId,
    contactAttributes: contactAttributes === null ? null : JSON.parse(contactAttributes),
  };
}

/** Tells why the response cannot have its display. null if it can, or the survey does not exist. */
export async function findDisplayProblem(db: Database, insertion: Insertion): Promise<string | null> {
  if (insertion.response.displayId === null) return null;
  const query = db
    .withoutPlugins()
    .selectFrom('surveys')
    .select((survey) => displayProblem(survey, insertion.respondent).as('problem'))
    .where('id', '=', parameter('surveyId'))
    .compile();
  const { rows } = await db.executeQuery(bind(query, insertion));
  return rows[0]?.problem || null;
}

/** Binds values to a query that was compiled with names instead of values. */
function bind<Row>(query: CompiledQuery<Row>, insertion: Insertion): CompiledQuery<Row> {
  const values: Values = {
    ...toRow(insertion.response),
    emailDigest: insertion.emailDigest,
    version: insertion.version,
    respondent: insertion.respondent?.value ?? null,
  };
  return { ...query, parameters: query.parameters.map((name) => Reflect.get(values, String(name))) };
}

type Values = Readonly<Record<(typeof texts)[number] | 'version' | 'respondent', string | null>> & {
  readonly finished: 0 | 1;
};

const texts = [
  'id',
  'createdAt',
  'updatedAt',
  'workspaceId',
  'surveyId',
  'displayId',
  'endingId',
  'data',
  'variables',
  'ttc',
  'meta',
  'singleUseId',
  'emailDigest',
  'language',
] as const;

const parameter = (name: keyof Values) => sql<string>`${name}`;

type SurveyExpressions = ExpressionBuilder<Tables, 'surveys'>;

/**
 * Compiled queries. Kysely takes longer to compile the query than the database to run it, so each variant is compiled
 * once.
 */
const compiled = new Map<string, ReturnType<typeof compileInsert>>();

function insertQuery(db: Database, insertion: Insertion) {
  const { respondent, response, version } = insertion;
  const key = [isPostgres(db), respondent?.by, response.displayId !== null, version !== null].join();
  const query = compiled.get(key) ?? compileInsert(db.withoutPlugins(), insertion);
  compiled.set(key, query);
  return query;
}

function compileInsert(db: Database, { respondent, response, version }: Insertion) {
  return db
    .insertInto('responses')
    .columns([...texts, 'finished', 'contactId', 'contactAttributes'])
    .expression(({ selectFrom }) => {
      const survey = selectFrom('surveys')
        .select(texts.map((name) => parameter(name).as(name)))
        // PostgreSQL treats a parameter without a type as text.
        .select(sql<0 | 1>`cast(${parameter('finished')} as integer)`.as('finished'))
        .where('surveys.id', '=', parameter('surveyId'))
        .$if(version !== null, (query) => query.where(versionOf(db), '=', parameter('version')))
        .$if(response.displayId !== null, (query) =>
          query.where((eb) => displayProblem(eb, respondent), '=', sql.lit(FITS)),
        );
      if (respondent === null) {
        return survey.select([sql<null>`null`.as('contactId'), sql<null>`null`.as('contactAttributes')]);
      }
      // With a join of the contacts, SQLite takes half as long again for the statement.
      return survey
        .select((eb) => contactsOf(eb, respondent).select('contacts.id').as('contactId'))
        .select((eb) =>
          contactsOf(eb, respondent)
            .select((contact) => attributesOf(db, contact).as('json'))
            .as('contactAttributes'),
        );
    })
    .returning(['contactId', 'contactAttributes'])
    .compile();
}

function contactsOf({ selectFrom }: SurveyExpressions, { by }: Respondent) {
  return selectFrom('contacts')
    .whereRef('contacts.workspaceId', '=', 'surveys.workspaceId')
    .where(`contacts.${by}`, '=', parameter('respondent'));
}

function attributesOf(db: Database, { selectFrom }: ExpressionBuilder<Tables, 'contacts'>) {
  const attributes = selectFrom('contactAttributes')
    .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .select(
      jsonObject(db, sql.ref('contactAttributeKeys.key'), sql.ref('contactAttributes.value')).as('json'),
    )
    .whereRef('contactAttributes.contactId', '=', 'contacts.id');
  return sql<string>`coalesce(${attributes}, '{}')`;
}

const FITS = '';

/** Finds out why the display does not fit. Only a unique index can detect that another response has the display. */
function displayProblem(survey: SurveyExpressions, respondent: Respondent | null) {
  const problem = survey
    .selectFrom('displays')
    .innerJoin('surveys as shown', 'shown.id', 'displays.surveyId')
    .where('displays.id', '=', parameter('displayId'))
    .select((display) => {
      const { exists, ref } = display;
      const reasons = display
        .case()
        .when('shown.workspaceId', '<>', ref('surveys.workspaceId'))
        .then(sql.lit('Display is part of another workspace'))
        .when('shown.id', '<>', ref('surveys.id'))
        .then(sql.lit('Display is part of another survey'));
      if (respondent === null) return reasons.else(sql.lit(FITS)).end().as('problem');
      const others = contactsOf(survey, respondent).whereRef(
        'contacts.id',
        '<>',
        'displays.contactId' as never,
      );
      return reasons
        .when(exists(others.select('contacts.id')))
        .then(sql.lit('Display belongs to another contact'))
        .else(sql.lit(FITS))
        .end()
        .as('problem');
    });
  return sql<string>`coalesce(${problem}, 'Display not found')`;
}
