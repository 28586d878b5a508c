/**
 * Reads change notifications from the table `stateChanges` twice a second, which reads one page of an index. It needs
 * none for events and mails, because their queues are polled.
 */
import type { Database } from '#api/db/schema.ts';
import { every } from '#api/work/every.ts';
import type { Millis } from '#shared/clock.ts';
import type { News, NewsListener } from './news.ts';

const POLL_MS: Millis = 500;

export interface TableNewsOptions {
  readonly db: Database;
  readonly listener: Pick<NewsListener, 'onStateChange' | 'onGap'>;
  readonly log: { warn(fields: object, message: string): void };
  readonly pollMs?: Millis;
}

/** Resolves when no later change can be missed. */
export async function startTableNews({
  db,
  listener,
  log,
  pollMs = POLL_MS,
}: TableNewsOptions): Promise<News> {
  let isHeard = true;
  let last = await newestId(db);

  const look = async (): Promise<void> => {
    const changes = await db
      .selectFrom('stateChanges')
      .selectAll()
      .where('id', '>', last)
      .orderBy('id')
      .execute();
    const [first] = changes;
    if (first !== undefined && first.id > last + 1) listener.onGap();
    for (const change of changes) {
      listener.onStateChange(change);
      last = change.id;
    }
    isHeard = true;
  };
  const job = every(pollMs, look, (error) => {
    if (isHeard) log.warn({ err: error }, 'changes of other processes cannot be read; they are read later');
    isHeard = false;
  });

  return {
    isHeard: () => isHeard,
    tellEvents: () => undefined,
    close: () => job.stop(),
  };
}

async function newestId(db: Database): Promise<number> {
  const { id } = await db
    .selectFrom('stateChanges')
    .select((row) => row.fn.max('id').as('id'))
    .executeTakeFirstOrThrow();
  return id ?? 0;
}
