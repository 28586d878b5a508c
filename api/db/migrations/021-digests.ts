/**
 * What is unique is compared by SHA-256 in PostgreSQL, where long text stands in an index as a digest. Of the 64 bits that
 * stood there before, anybody can find two texts that have the same; the second one was then refused as taken.
 *
 * A backslash begins an escape where text is cast to bytes, so it is doubled. Responses without a single-use id, which
 * are most, have no entry any more.
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

/** SQLite indexes the text itself. */
export const digests = {
  sqlite: [],
  postgres: [
    dropDigests,
    unique('actionClasses_key', 'actionClasses', 'workspaceId', 'key'),
    unique('responses_singleUseId', 'responses', 'surveyId', 'singleUseId'),
  ],
};
