/**
 * Most responses come alone: no webhook hears of them, they end no survey, name no file, and follow no display. Such a one
 * is written by one statement, which looks in the same moment whether all that was read before is still so. A transaction
 * would ask the database five times for that, and hold a connection for as long.
 */
import { type CompiledQuery, type Kysely, sql } from 'kysely';
import { isPostgres, surveyVersion } from '#api/db/dialect.ts';
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

type Row = ReturnType<typeof toRow>;

/** Parameters of the statement, by name. */
type Values = Row & { readonly version: string; readonly scopeId: string };

/**
 * One statement for a response that nothing else is written with. A contact that was deleted meanwhile is left out.
 *
 * @param survey as it was read, which may be a while ago
 * @param scopeId the id of its workspace under which it was found, one of two
 * @returns false: it is another survey now or has gone, or its workspace has a webhook or another id
 */
export async function insertLoneResponse(
  db: Kysely<Database>,
  response: Response,
  { version, workspaceId }: AnsweredSurvey,
  scopeId: string,
): Promise<boolean> {
  const values: Values = { ...toRow(response), version, scopeId };
  const { parameters, ...query } = compiledInsert(db, {
    hasContact: values.contactId !== null,
    isLegacyScope: scopeId !== workspaceId,
  });
  const { numAffectedRows } = await db.executeQuery({
    ...query,
    parameters: parameters.map((name) => Reflect.get(values, String(name))),
  });
  return numAffectedRows === 1n;
}

interface Variant {
  readonly hasContact: boolean;
  /** Found by the id that older clients know, which may change; the other one cannot. */
  readonly isLegacyScope: boolean;
}

/** Making the text takes longer than the statement. */
const compiled = new Map<string, CompiledQuery>();

/** @returns with the names of its parameters in their places */
function compiledInsert(db: Kysely<Database>, variant: Variant): CompiledQuery {
  const key = JSON.stringify([isPostgres(db), variant]);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const made = insertQuery(db.withoutPlugins(), variant).compile();
  compiled.set(key, made);
  return made;
}

const texts = [
  ...(['id', 'createdAt', 'updatedAt', 'workspaceId', 'surveyId', 'displayId', 'endingId', 'data'] as const),
  ...(['variables', 'ttc', 'meta', 'contactAttributes', 'singleUseId', 'language'] as const),
] satisfies readonly (keyof Row)[];

function insertQuery(db: Kysely<Database>, { hasContact, isLegacyScope }: Variant) {
  const value = (name: keyof Values) => sql<string>`${name}`;
  return db
    .insertInto('responses')
    .columns([...texts, 'finished', 'contactId'])
    .expression(({ selectFrom }) => {
      const unchanged = selectFrom('surveys')
        .select(texts.map((name) => value(name).as(name)))
        // A number among parameters of unknown types.
        .select(sql<0 | 1>`cast(${value('finished')} as integer)`.as('finished'))
        .select(({ selectFrom }) =>
          hasContact
            ? selectFrom('contacts')
                .select('contacts.id')
                .where('contacts.id', '=', value('contactId'))
                .as('contactId')
            : sql<null>`null`.as('contactId'),
        )
        .where('surveys.id', '=', value('surveyId'))
        .where(surveyVersion(db), '=', value('version'))
        .where((survey) => survey.not(webhooksOf(survey)));
      if (!isLegacyScope) return unchanged;
      return unchanged.where(({ exists, selectFrom }) =>
        exists(
          selectFrom('workspaces')
            .select('workspaces.id')
            .whereRef('workspaces.id', '=', 'surveys.workspaceId')
            .where('workspaces.legacyEnvironmentId', '=', value('scopeId')),
        ),
      );
    });
}
