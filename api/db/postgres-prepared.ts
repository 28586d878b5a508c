/**
 * Which statements the server keeps prepared, for each connection: parsed once, and planned once where that is as good.
 * Parsing and planning is most of what a short statement costs it.
 *
 * Only what is asked often, and only so many: a list of another length is another text, and what is prepared takes memory
 * of each connection until it ends. Texts are the code's own, values are parameters, so a name tells nothing.
 */
export interface PreparedStatements {
  /** @returns the name under which a connection prepares the text when it first meets it; null: not to be prepared */
  nameOf(text: string): string | null;
  /**
   * Tables have changed, as when a newer version of this program migrates them: what was prepared before does not fit any
   * more, so all get new names.
   */
  renew(staleName: string): void;
}

/** About 20 KB of each connection for one; the routes of clients need some twenty. */
const PREPARED_MAX = 100;
const ASKED_MIN = 10;
/** Texts that are counted; those of long lists are many, and none of them comes often. */
const COUNTED_MAX = 1_000;
/** No text of ours that is asked often is longer, and texts are kept. */
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
      // Of several that meet a change at once, the first one is enough.
      if (!staleName.startsWith(`${generation}_`)) return;
      generation += 1;
      names.clear();
    },
  };
}
