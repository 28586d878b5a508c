/**
 * What several processes on one database have to tell each other: that the state of a workspace has changed, and which
 * scheduled job is whose.
 *
 * Triggers write the changes, in the transaction of the change: no route can forget it, and what goes with its owner is
 * told as well. The list is cut to its newest thousand; a reader that finds a gap has missed some.
 */
export const CHANGES_KEPT = 1_000;

/** What a state is made of, see resources/environment. Rows that hang on a survey change together with it. */
const parts = ['surveys', 'segments', 'actionClasses', 'workspaces'] as const;

function changeTriggers(table: (typeof parts)[number]): readonly string[] {
  const events =
    table === 'workspaces' ? (['update', 'delete'] as const) : (['insert', 'update', 'delete'] as const);
  return events.map((event) => {
    const row = event === 'delete' ? 'old' : 'new';
    const ids =
      table === 'workspaces'
        ? `${row}."id", coalesce(${row}."legacyEnvironmentId", ${row}."id")`
        : `${row}."workspaceId", coalesce(
            (select "legacyEnvironmentId" from "workspaces" where "id" = ${row}."workspaceId"), ${row}."workspaceId")`;
    return `create trigger "${table}_${event}_changesState" after ${event} on "${table}" begin
      insert into "stateChanges" ("workspaceId", "environmentId") values (${ids});
      delete from "stateChanges" where "id" <= (select max("id") from "stateChanges") - ${CHANGES_KEPT};
    end`;
  });
}

export const processes: readonly string[] = [
  `create table "stateChanges" (
    "id" integer primary key,
    "workspaceId" text not null,
    "environmentId" text not null
  )`,
  ...parts.flatMap(changeTriggers),

  `create table "scheduledJobs" (
    "name" text primary key,
    "dueAt" text not null,
    "lease" text
  )`,
];
