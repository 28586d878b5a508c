/**
 * The numbers of responses of each survey, so that no request has to count them. Triggers change them in the transaction
 * of the response, so no route can forget it, and cascading deletes count too.
 *
 * The numbers of a survey are the sums of its rows, its parts. On SQLite it has one. On PostgreSQL the connection decides
 * which part a write changes. With a single one, the writers of a survey would wait for each other's commits.
 */
export const responseCounts: readonly string[] = [
  `create table "responseCounts" (
    "surveyId" text not null references "surveys" ("id") on delete cascade,
    "part" integer not null,
    "responses" integer not null,
    "finished" integer not null,
    primary key ("surveyId", "part")
  )`,
];

/** Runs when the triggers exist. On PostgreSQL their creation waits for all writers of responses. */
const fill = `insert into "responseCounts" ("surveyId", "part", "responses", "finished")
  select "surveyId", 0, count(*), sum("finished") from "responses" group by "surveyId"`;

const added = `insert into "responseCounts" ("surveyId", "part", "responses", "finished")
    values (new."surveyId", 0, 1, new."finished")
    on conflict ("surveyId", "part") do update
    set "responses" = "responses" + 1, "finished" = "finished" + new."finished";`;
const taken = `update "responseCounts" set "responses" = "responses" - 1, "finished" = "finished" - old."finished"
    where "surveyId" = old."surveyId";`;

const isOther = `old."finished" <> new."finished" or old."surveyId" <> new."surveyId"`;

/**
 * Names the schema of the tables, because a manual change may come from a session with another search path. A function
 * with a search path of its own takes twice as long.
 */
const inSchema = (statement: string) => `do $do$ begin
  execute replace($statement$${statement}$statement$, 'SCHEMA', quote_ident(current_schema()));
end $do$`;

/** Connections with different numbers do not wait for each other. */
export const PARTS = 32;
const part = `pg_backend_pid() % ${PARTS}`;

/** Adds nothing to a survey that is being deleted. */
const change = (survey: string, more: string, finished: string) => `
    update SCHEMA."responseCounts" set "responses" = "responses" + ${more}, "finished" = "finished" + ${finished}
    where "surveyId" = ${survey} and "part" = ${part};
    if not found then
      insert into SCHEMA."responseCounts" as kept ("surveyId", "part", "responses", "finished")
      select "id", ${part}, ${more}, ${finished} from SCHEMA."surveys" where "id" = ${survey} for key share
      on conflict ("surveyId", "part") do update set
        "responses" = kept."responses" + excluded."responses", "finished" = kept."finished" + excluded."finished";
    end if;`;

const countOne = `create function SCHEMA."countWrittenResponse"() returns trigger language plpgsql as $body$
  begin
    if tg_op = 'UPDATE' then ${change('old."surveyId"', '-1', '-old."finished"')}
    end if; ${change('new."surveyId"', '1', 'new."finished"')}
    return null;
  end
$body$`;

/** One statement may delete very many rows, and a row that a transaction changes often takes ever longer to change. */
const countDeleted = `create function SCHEMA."countDeletedResponses"() returns trigger language plpgsql as $body$
  declare
    survey record;
  begin
    for survey in
      select "surveyId", -count(*) as "responses", -sum("finished")::bigint as "finished" from "deleted"
      group by "surveyId" order by "surveyId"
    loop ${change('survey."surveyId"', 'survey."responses"', 'survey."finished"')}
    end loop;
    return null;
  end
$body$`;

export const countTriggers = {
  sqlite: [
    `create trigger "responses_insert_counts" after insert on "responses" begin ${added} end`,
    `create trigger "responses_update_counts" after update of "finished", "surveyId" on "responses"
      when ${isOther} begin ${taken} ${added} end`,
    `create trigger "responses_delete_counts" after delete on "responses" begin ${taken} end`,
    fill,
  ],
  postgres: [
    ...[countOne, countDeleted].map(inSchema),
    `create trigger "responses_insert_counts" after insert on "responses"
      for each row execute function "countWrittenResponse"()`,
    `create trigger "responses_update_counts" after update of "finished", "surveyId" on "responses"
      for each row when (${isOther}) execute function "countWrittenResponse"()`,
    `create trigger "responses_delete_counts" after delete on "responses" referencing old table as "deleted"
      for each statement execute function "countDeletedResponses"()`,
    fill,
  ],
};
