/**
 * Change notifications between processes on the same PostgreSQL server, over a channel and a connection of its own. A
 * notification that is lost delays something, and loses nothing: queues are polled, and states are cached for minutes. So
 * a SQLite file, which one process serves, needs none.
 *
 * Triggers notify about states and mails, when their transaction commits. This file notifies about events, outside the
 * transaction and a few times a second at most: NOTIFY in a transaction makes commits wait for each other, and every
 * response may have events.
 */
import type { DatabaseLocation } from '#api/db/location.ts';
import { CHANNEL } from '#api/db/migrations/state-changes.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { openListening } from '#api/db/postgres-driver.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';

const GATHER_MS: Millis = 250;
const PAUSE_MS: Millis = 250;
const PAUSE_MS_MAX: Millis = 5_000;
/** The time to open a connection, and to close one. */
const WAIT_MS: Millis = 5_000;

export interface NewsListener {
  /** Called after the commit, also for changes of this process. */
  onStateChange(workspaceId: string): void;
  /** Called if notifications may have been missed. */
  onGap(): void;
  /** Called if another process has written events. */
  onEvents(): void;
  /** Called if some process, possibly this one, has written mails. */
  onMails(): void;
}

interface NewsLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface News {
  /** Notifies other processes about new events. */
  tellEvents(): void;
  close(): Promise<void>;
}

const NO_NEWS: News = { tellEvents: () => undefined, close: async () => undefined };

/** Resolves when it receives notifications, or when that fails for now; then it keeps trying. */
export async function openNews(
  location: DatabaseLocation,
  listener: NewsListener,
  log: NewsLog,
): Promise<News> {
  if (location.kind !== 'postgres') return NO_NEWS;
  const news = new ChannelNews(location, listener, log);
  await news.open();
  return news;
}

type Connection = Awaited<ReturnType<typeof openListening>>;

class ChannelNews implements News {
  readonly #location: PostgresLocation;
  readonly #listener: NewsListener;
  readonly #log: NewsLog;
  #connection: Connection | null = null;
  #pauseMs: Millis = PAUSE_MS;
  #retrying: NodeJS.Timeout | undefined;
  #telling: NodeJS.Timeout | undefined;
  #isAwayTold = false;
  #isClosed = false;

  constructor(location: PostgresLocation, listener: NewsListener, log: NewsLog) {
    this.#location = location;
    this.#listener = listener;
    this.#log = log;
  }

  tellEvents(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      const connection = this.#connection;
      connection
        ?.query('select pg_notify($1, $2)', [CHANNEL, '["events"]'])
        .catch((error: unknown) => this.#lose(connection, error));
    }, GATHER_MS).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retrying);
    clearTimeout(this.#telling);
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await end(connection);
  }

  async open(): Promise<void> {
    let connection: Connection | null = null;
    try {
      connection = await openListening(this.#location);
      await this.#listenOn(connection);
    } catch (error) {
      // A certificate that is being replaced cannot be read for a moment.
      this.#retry(error);
      if (connection !== null) await end(connection);
    }
  }

  async #listenOn(connection: Connection): Promise<void> {
    // The events `error` and `end` may happen at any time, and more than once.
    const lost = (error: unknown): void => this.#lose(connection, error);
    connection.on('error', lost);
    connection.on('end', () => lost(new Error('the connection ended')));
    connection.on('notification', ({ payload = '', processId }) =>
      this.#hear(payload, processId === Reflect.get(connection, 'processID')),
    );
    await within(WAIT_MS, connection.connect());
    await connection.query(`listen ${CHANNEL}`);
    if (this.#isClosed) return end(connection);
    this.#connection = connection;
    this.#pauseMs = PAUSE_MS;
    if (this.#isAwayTold) this.#log.info({}, 'change notifications of other processes arrive again');
    this.#isAwayTold = false;
    // From now on no notification is missed. Earlier ones may have been.
    this.#listener.onGap();
    this.#listener.onEvents();
    this.#listener.onMails();
  }

  #hear(payload: string, isOurs: boolean): void {
    const [kind, workspaceId] = read(payload);
    if (kind === 'state' && workspaceId !== undefined) this.#listener.onStateChange(workspaceId);
    if (kind === 'mails') this.#listener.onMails();
    if (kind === 'events' && !isOurs) this.#listener.onEvents();
  }

  #lose(connection: Connection, error: unknown): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    end(connection).catch(() => undefined);
    this.#retry(error);
  }

  #retry(error: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isAwayTold) {
      this.#log.warn(
        { err: error },
        'change notifications of other processes do not arrive; their changes are noticed within minutes',
      );
    }
    this.#isAwayTold = true;
    this.#retrying = setTimeout(() => void this.open(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
  }
}

/** Cuts a connection that does not close in time. */
async function end(connection: Connection): Promise<void> {
  await within(WAIT_MS, connection.end()).catch(() => undefined);
}

/** @returns nothing for messages that this program does not send */
function read(payload: string): readonly string[] {
  try {
    const message: unknown = JSON.parse(payload);
    return Array.isArray(message) ? message.map(String) : [];
  } catch {
    return [];
  }
}
