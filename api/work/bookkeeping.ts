/**
 * Small writes that no reply waits for, such as the time of a key's last use. While another process writes to the
 * database, the reads that cause them are still answered. A write that fails is not repeated: the next request tries
 * again.
 */

/** Begins a write, unless that of the same id is still running. Never rejects. */
type Bookkeeping = (id: string, write: () => Promise<unknown>) => void;

export function createBookkeeping(): Bookkeeping {
  const running = new Set<string>();
  return (id, write) => {
    if (running.has(id)) return;
    running.add(id);
    write()
      .catch(() => undefined)
      .finally(() => running.delete(id));
  };
}
