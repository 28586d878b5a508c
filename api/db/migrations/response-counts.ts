/**
 * The numbers of responses of each survey, so that no request has to count them. Triggers change them in the transaction
 * of the response, so no route can forget it, and cascading deletes count too.
 *
 * The numbers of a survey are the sums of its rows, its parts. On SQLite it has one. On PostgreSQL the connection decides
 * which part a write changes. With a single one, the writers of a survey would wait for each other's commits.
 */
const added = `insert into "responseCounts" ("surveyId", "part", "responses", "finished")
    values (new."surveyId", 0, 1, new."finished")
    on conflict ("surveyId", "part") do update
    set "responses" = "responses" + 1, "finished" = "finished" + new."finished";`;
const taken = `update "responseCounts" set "responses" = "responses" - 1, "finished" = "finished" - old."finished"
    where "surveyId" = old."surveyId";`;

/**
 * Names the schema of the tables, because a manual change may come from a session with another search path. A function
 * with a search path of its own takes twice as long.
 */
const inSchema = (statement: string) => `do $do$ begin
  execute replace($statement$${statement}$statement$, 'SCHEMA', quote_ident(current_schema()));
end $do$`;

/** Connections with different numbers do not wait for each other. */
export const PARTS = 32;

/** @param rows selects a survey, and how much each number of it grows */
const grow = (rows: string) => `
      insert into SCHEMA."responseCounts" as kept ("surveyId", "responses", "finished", "part")
      select *, pg_backend_pid() % ${PARTS} from (${rows}) as "changes" order by "surveyId"
      on conflict ("surveyId", "part") do update set
        "responses" = kept."responses" + excluded."responses", "finished" = kept."finished" + excluded."finished";`;

const countInserted = grow(`
        select "surveyId", count(*), count(*) filter (where "finished" = 1) from "added" group by "surveyId"`);
const countUpdated = grow(`
        select "surveyId", sum("one"), sum("finished") from (
          select "surveyId", 1 as "one", "finished" from "added"
          union all select "surveyId", -1, -"finished" from "taken") as "rows"
        group by "surveyId" having sum("one") <> 0 or sum("finished") <> 0`);
/**
 * Adds no row, because that would fail for a survey that is being deleted. It takes one that no other connection is
 * changing, or waits if there is none. A survey with responses has a row. It must be chosen once, so the choice is
 * materialized.
 */
const countDeleted = `
      with "gone" as materialized (
        select "surveyId", count(*) as "responses", count(*) filter (where "finished" = 1) as "finished", coalesce(
          (select "part" from SCHEMA."responseCounts" as free where free."surveyId" = "taken"."surveyId"
            order by "part" limit 1 for no key update skip locked),
          (select min("part") from SCHEMA."responseCounts" as any_one where any_one."surveyId" = "taken"."surveyId")
        ) as "part"
        from "taken" group by "surveyId")
      update SCHEMA."responseCounts" as kept
      set "responses" = kept."responses" - gone."responses", "finished" = kept."finished" - gone."finished"
      from "gone" where kept."surveyId" = gone."surveyId" and kept."part" = gone."part";`;

/** Sums the rows of a statement first, because a row that one transaction changes often takes ever longer to change. */
const count = `create function SCHEMA."countResponses"() returns trigger language plpgsql as $body$
  begin
    if tg_op = 'INSERT' then ${countInserted}
    elsif tg_op = 'UPDATE' then ${countUpdated}
    else ${countDeleted}
    end if;
    return null;
  end
$body$`;

const trigger = (
  event: string,
  rows: string,
) => `create trigger "responses_${event}_counts" after ${event} on "responses"
      referencing ${rows} for each statement execute function "countResponses"()`;

const forSqlite = [
  `create trigger "responses_insert_counts" after insert on "responses" begin ${added} end`,
  `create trigger "responses_update_counts" after update of "finished", "surveyId" on "responses"
      when old."finished" <> new."finished" or old."surveyId" <> new."surveyId" begin ${taken} ${added} end`,
  `create trigger "responses_delete_counts" after delete on "responses" begin ${taken} end`,
];

const forPostgres = [
  inSchema(count),
  trigger('insert', 'new table as "added"'),
  trigger('update', 'new table as "added" old table as "taken"'),
  trigger('delete', 'old table as "taken"'),
];

export function countTriggers(isPostgres: boolean): readonly string[] {
  return isPostgres ? forPostgres : forSqlite;
}
