/**
 * Chooses the statements that the server keeps prepared, which saves parsing and planning, most of the cost of a short
 * statement.
 *
 * Only frequent statements are prepared, up to a limit, because each takes memory of each connection, and lists of
 * different lengths are different texts. Texts contain no values, so the names reveal nothing.
 */
export interface PreparedStatements {
  /** @returns name of the prepared statement, the same on all connections; null if it is not prepared */
  nameOf(text: string): string | null;
  /** Renames all statements after a change of tables, such as a migration by a newer version of the program. */
  renew(staleName: string): void;
}

/**
 * Maximum number of prepared statements. Each takes about 20 KB of a connection. The client routes need about twenty.
 */
const PREPARED_MAX = 100;
const ASKED_MIN = 10;
/** Limit of texts whose use is counted. */
const COUNTED_MAX = 1_000;
/** Limit of the length of stored texts. No frequent statement is longer. */
const LENGTH_MAX = 10_000;

export function createPreparedStatements(): PreparedStatements {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  let generation = 0;
  return {
    nameOf(text) {
      const known = names.get(text);
      if (known !== undefined) return known;
      if (names.size >= PREPARED_MAX || text.length > LENGTH_MAX) return null;
      const count = (counts.get(text) ?? 0) + 1;
      if (count < ASKED_MIN) {
        if (counts.size >= COUNTED_MAX) counts.clear();
        counts.set(text, count);
        return null;
      }
      counts.delete(text);
      const name = `${generation}_${names.size}`;
      names.set(text, name);
      return name;
    },
    renew(staleName) {
      // If several statements fail after one change, the first one has already renamed all.
      if (!staleName.startsWith(`${generation}_`)) return;
      generation += 1;
      names.clear();
    },
  };
}
