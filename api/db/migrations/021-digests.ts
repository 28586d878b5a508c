/**
 * In PostgreSQL, unique long texts are compared by SHA-256 from now on. Before, the digest had 64 bits, and with a
 * deliberate collision the second text was refused as taken.
 *
 * Backslashes are doubled, because they start an escape when text is cast to bytea. Responses without a single-use id,
 * which are most, are no longer in the index.
 */
const dropDigests = `do $body$
  declare digest record;
  begin
    for digest in
      select indexrelid::regclass as name from pg_index
      where indrelid in ('"actionClasses"'::regclass, '"responses"'::regclass) and indisunique and indexprs is not null
    loop
      execute format('drop index %s', digest.name);
    end loop;
  end
$body$`;

function unique(name: string, table: string, owner: string, column: string): string {
  return `create unique index "${name}"
    on "${table}" ("${owner}", sha256(replace("${column}", '\\', '\\\\')::bytea)) where "${column}" is not null`;
}

export const digests = {
  sqlite: [],
  postgres: [
    dropDigests,
    unique('actionClasses_key', 'actionClasses', 'workspaceId', 'key'),
    unique('responses_singleUseId', 'responses', 'surveyId', 'singleUseId'),
  ],
};
