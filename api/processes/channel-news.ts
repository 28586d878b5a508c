/**
 * Sends and receives change notifications over a channel of PostgreSQL, on a connection of its own.
 *
 * Triggers notify about states and mails, when their transaction commits. This file notifies about events, outside the
 * transaction and a few times a second at most: NOTIFY in a transaction makes commits wait for each other, and every
 * response may have events.
 *
 * The connection is tested with messages to itself. Otherwise a broken network, or a pooler that does not forward
 * notifications, would look like silence. After a reconnect all caches are dropped, because notifications may have been
 * missed.
 */
import { CHANNEL } from '#api/db/migrations/state-changes.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';
import { openListening } from '#api/db/postgres-driver.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { News, NewsListener } from './news.ts';

const PROOF_MS: Millis = 5_000;
const GATHER_MS: Millis = 250;
const PAUSE_MS: Millis = 250;
const PAUSE_MS_MAX: Millis = 5_000;
/** The time to open a connection, and to close one. */
const WAIT_MS: Millis = 5_000;

export interface ChannelNewsOptions {
  readonly location: PostgresLocation;
  readonly listener: NewsListener;
  readonly log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
  readonly proofMs?: Millis;
}

type Connection = Awaited<ReturnType<typeof openListening>>;

/** Resolves when it receives notifications, or when that fails for now; then it keeps trying. */
export async function startChannelNews(options: ChannelNewsOptions): Promise<News> {
  const news = new ChannelNews(options);
  await news.open();
  return news;
}

class ChannelNews implements News {
  readonly #options: ChannelNewsOptions;
  /** The connection that receives notifications. */
  #connection: Connection | null = null;
  /** Whether the last test message has come back. */
  #isProved = true;
  #pauseMs: Millis = PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #telling: NodeJS.Timeout | undefined;
  #isAwayTold = false;
  #isClosed = false;

  constructor(options: ChannelNewsOptions) {
    this.#options = options;
  }

  isHeard(): boolean {
    return this.#connection !== null;
  }

  tellEvents(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#say(['events']);
    }, GATHER_MS).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#telling);
    const connection = this.#connection;
    this.#connection = null;
    if (connection !== null) await end(connection);
  }

  async open(): Promise<void> {
    let connection: Connection;
    try {
      connection = await openListening(this.#options.location);
    } catch (error) {
      // A certificate that is being replaced cannot be read for a moment.
      this.#retry(error);
      return;
    }
    await this.#listenOn(connection);
  }

  async #listenOn(connection: Connection): Promise<void> {
    const { listener, log } = this.#options;
    // The events `error` and `end` may happen at any time, and more than once.
    const lost = (error: unknown): void => this.#lose(connection, error);
    connection.on('error', lost);
    connection.on('end', () => lost(new Error('the connection ended')));
    connection.on('notification', ({ payload = '', processId }) =>
      this.#hear(payload, processId === Reflect.get(connection, 'processID')),
    );
    try {
      await within(WAIT_MS, connection.connect());
      await connection.query(`listen ${CHANNEL}`);
    } catch (error) {
      this.#retry(error);
      await end(connection);
      return;
    }
    if (this.#isClosed) return end(connection);
    this.#connection = connection;
    this.#isProved = true;
    this.#pauseMs = PAUSE_MS;
    if (this.#isAwayTold) log.info({}, 'change notifications of other processes arrive again');
    this.#isAwayTold = false;
    // From now on no notification is missed. Earlier ones may have been.
    listener.onGap();
    listener.onEvents();
    listener.onMails();
    this.#proveLater();
  }

  #hear(payload: string, isOurs: boolean): void {
    const { listener } = this.#options;
    const [kind, workspaceId, environmentId] = read(payload);
    if (kind === 'state' && workspaceId !== undefined && environmentId !== undefined) {
      listener.onStateChange({ workspaceId, environmentId });
    }
    if (kind === 'mails') listener.onMails();
    if (kind === 'events' && !isOurs) listener.onEvents();
    if (kind === 'proof' && isOurs) this.#isProved = true;
  }

  #proveLater(): void {
    this.#timer = setTimeout(() => {
      const connection = this.#connection;
      if (connection === null) return;
      if (!this.#isProved) {
        this.#lose(
          connection,
          new Error('notifications of PostgreSQL do not arrive; a connection pooler may not forward them'),
        );
        return;
      }
      this.#isProved = false;
      this.#say(['proof']);
      this.#proveLater();
    }, this.#options.proofMs ?? PROOF_MS);
    this.#timer.unref();
  }

  #say(message: readonly string[]): void {
    const connection = this.#connection;
    connection
      ?.query('select pg_notify($1, $2)', [CHANNEL, JSON.stringify(message)])
      .catch((error: unknown) => this.#lose(connection, error));
  }

  #lose(connection: Connection, error: unknown): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    clearTimeout(this.#timer);
    end(connection).catch(() => undefined);
    this.#retry(error);
  }

  #retry(error: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isAwayTold) {
      this.#options.log.warn(
        { err: error },
        'change notifications of other processes do not arrive; their changes are noticed within minutes',
      );
    }
    this.#isAwayTold = true;
    this.#timer = setTimeout(() => void this.open(), this.#pauseMs);
    this.#timer.unref();
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
