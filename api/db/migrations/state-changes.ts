/**
 * Triggers of PostgreSQL that tell other processes of changes of workspace states, and of mails to send. They notify a
 * channel when the transaction of the change commits, so no route can forget it, and cascading deletes count too.
 */

/** Messages are JSON: `["state", workspaceId]` or `["mails"]`. */
export const CHANNEL = 'floodgate';

/** Tables whose rows are part of a state, see resources/environment. Rows that belong to a survey change with it. */
const parts = ['surveys', 'segments', 'actionClasses', 'workspaces'] as const;

/** Names are qualified, because a manual change may come from a session with another search path. */
const tellStateChange = `create function "tellStateChange"() returns trigger language plpgsql as $body$
  declare
    changed record;
    workspace text;
  begin
    if tg_op = 'DELETE' then changed := old; else changed := new; end if;
    if tg_table_name = 'workspaces' then
      workspace := changed."id";
    else
      workspace := changed."workspaceId";
    end if;
    perform pg_notify('${CHANNEL}', json_build_array('state', workspace)::text);
    return null;
  end
$body$`;

const tellMails = `create function "tellMails"() returns trigger language plpgsql as $body$
  begin
    perform pg_notify('${CHANNEL}', '["mails"]');
    return null;
  end
$body$`;

export const changeTriggers: readonly string[] = [
  tellStateChange,
  ...parts.map(
    (table) => `create trigger "${table}_changesState" after insert or update or delete on "${table}"
        for each row execute function "tellStateChange"()`,
  ),
  tellMails,
  `create trigger "mailOutbox_tells" after insert on "mailOutbox"
      for each statement execute function "tellMails"()`,
];
