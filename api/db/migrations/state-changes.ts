/**
 * Triggers that tell other processes of changes of workspace states, and of mails to send.
 *
 * Triggers record changes within the transaction of the change, so no route can forget it, and cascading deletes count
 * too. SQLite keeps a list of the newest thousand; a reader that finds a gap has missed changes. PostgreSQL notifies a
 * channel at commit, and its list stays empty.
 */
import type { SchemaWriter } from './schema-writer.ts';

export const CHANGES_KEPT = 1_000;

/** Channel of PostgreSQL. Messages are JSON: `["state", workspaceId, environmentId]` or `["mails"]`. */
export const CHANNEL = 'floodgate';

/** Tables whose rows are part of a state, see resources/environment. Rows that belong to a survey change with it. */
const parts = ['surveys', 'segments', 'actionClasses', 'workspaces'] as const;
const events = ['insert', 'update', 'delete'] as const;

function listing(table: (typeof parts)[number], event: (typeof events)[number]): string {
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
}

/** Names are qualified, because a manual change may come from a session with another search path. */
const tellStateChange = `create function "tellStateChange"() returns trigger language plpgsql as $body$
  declare
    changed record;
    workspace text;
    environment text;
  begin
    if tg_op = 'DELETE' then changed := old; else changed := new; end if;
    if tg_table_name = 'workspaces' then
      workspace := changed."id";
      environment := changed."legacyEnvironmentId";
    else
      workspace := changed."workspaceId";
      execute format('select "legacyEnvironmentId" from %I."workspaces" where "id" = $1', tg_table_schema)
        into environment using workspace;
    end if;
    perform pg_notify('${CHANNEL}', json_build_array('state', workspace, coalesce(environment, workspace))::text);
    return null;
  end
$body$`;

const tellMails = `create function "tellMails"() returns trigger language plpgsql as $body$
  begin
    perform pg_notify('${CHANNEL}', '["mails"]');
    return null;
  end
$body$`;

const forSqlite = parts.flatMap((table) => events.map((event) => listing(table, event)));
const forPostgres = [
  tellStateChange,
  ...parts.map(
    (table) => `create trigger "${table}_changesState" after insert or update or delete on "${table}"
        for each row execute function "tellStateChange"()`,
  ),
  tellMails,
  `create trigger "mailOutbox_tells" after insert on "mailOutbox"
      for each statement execute function "tellMails"()`,
];

export async function createChangeTriggers(write: SchemaWriter): Promise<void> {
  await write.run(write.isPostgres ? forPostgres : forSqlite);
}
