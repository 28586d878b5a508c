/**
 * One server: the only file that knows the client library.
 *
 * A connection is ready once the server has shown that it is what we came for and does its work: a primary, a node of a
 * Cluster or a sentinel, not loading. Anything else ends the connection, and the next attempt comes after a delay that
 * grows to a second. The library's own Cluster and Sentinel clients are not used: they send a call again when its
 * connection broke, queue calls while a node connects, and leave promises behind that nobody handles.
 */
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis } from 'ioredis';
import type { Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { type Endpoint, endpointName } from './address.ts';
import type { StoreScript } from './connection.ts';
import { faultOf, StoreFault } from './fault.ts';
import type { StoreTls } from './tls.ts';

export interface NodeOptions {
  /** Asked before every attempt to connect. */
  readonly locate: () => Endpoint | Promise<Endpoint>;
  readonly expects: 'primary' | 'cluster-node' | 'sentinel';
  readonly database: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly tls: StoreTls | null;
  /** A connection on which nothing comes for so long while something is asked is dead, even if nobody has closed it. */
  readonly silenceMs: Millis;
  readonly onChange: (ready: boolean) => void;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (why: StoreFault) => void;
}

const CLOSED = /EPIPE|ECONNRESET|closed/;
const RECONNECT_MS_MAX: Millis = 1000;
/** In which the time of a silent connection passes. */
const SILENT_TICKS_MAX = 4;
/** For what is still in flight when we leave a server. */
const DISCONNECT_TIMEOUT_MS: Millis = 200;

export class RedisNode {
  readonly #options: NodeOptions;
  readonly #redis: Redis;
  #ready = false;
  #closed = false;
  /** Told apart, so that what is learned of one connection is not believed of the next. */
  #session = 0;
  #failuresInRow = 0;
  #where = 'the store';
  #lastError: Error | null = null;
  /** A connection is open, and the server has not shown yet that it does its work. */
  #isUntried = false;
  /** The library calls itself ready also where the server refused the database, and then uses another. */
  #databaseRefused: Error | null = null;
  /** Scripts that this connection has sent. */
  readonly #sent = new Set<StoreScript>();
  /** Calls that have not been answered. */
  #asked = 0;
  #waiters: Waiter[] = [];
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.#redis = new Redis({
      Connector: this.#connector(),
      ...(options.tls === null ? {} : { tls: {} }),
      username: options.username ?? undefined,
      password: options.password ?? undefined,
      db: options.database,
      connectionName: 'floodgate',
      disableClientInfo: true,
      ...FAIL_FAST,
      enableReadyCheck: false,
      // We look for ourselves what a server is, and leave it when that changes.
      reconnectOnError: null,
      retryStrategy: () => this.#reconnectMs(),
    });
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error;
      if (commandOf(error) === 'select') this.#databaseRefused = error;
    });
    this.#redis.on('connect', () => {
      this.#isUntried = true;
    });
    this.#redis.on('ready', () => this.#onReady());
    this.#redis.on('close', () => this.#onDown());
    this.#redis.on('end', () => this.#onEnd());
  }

  get ready(): boolean {
    return this.#ready;
  }

  whyDown(): StoreFault {
    return faultOf(this.#lastError ?? new Error('the connection is closed'), this.#where);
  }

  /** Begins to connect, and goes on until `close`. */
  connect(): void {
    this.#redis.connect().catch(toldByEvents);
  }

  /** @throws StoreFault when the attempt that is being made, or the next one, fails */
  whenReady(): Promise<void> {
    if (this.#ready) return Promise.resolve();
    if (this.#closed) return Promise.reject(this.whyDown());
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** @throws StoreFault, its cause the server's own error */
  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!this.#ready) return Promise.reject(this.whyDown());
    // The first time with its text, so that calls are executed in the order in which they are made.
    if (!this.#sent.has(script)) {
      this.#sent.add(script);
      return this.#eval(script, keys, args);
    }
    this.#asked++;
    return this.#redis
      .evalsha(script.sha1, keys.length, ...keys, ...args)
      .then(this.#onAnswer, (error: Error) => {
        this.#asked--;
        if (!error.message.startsWith('NOSCRIPT') || !this.#ready) throw this.#fault(error);
        return this.#eval(script, keys, args);
      });
  }

  /** Asks a node for keys that are on their way to it. */
  runAsking(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!this.#ready) return Promise.reject(this.whyDown());
    // Should it fail, then so does what follows on the same connection.
    this.#redis.asking().catch(toldByEvents);
    return this.#eval(script, keys, args);
  }

  /** @throws StoreFault */
  ask(command: string, ...args: readonly string[]): Promise<unknown> {
    if (!this.#ready) return Promise.reject(this.whyDown());
    this.#asked++;
    return this.#redis.call(command, ...args).then(this.#onAnswer, this.#onError);
  }

  /** Leaves this server and looks for it again. */
  reconnect(why: Error): void {
    this.#lastError = why;
    this.#change(false);
    this.#redis.disconnect(true);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#reconnectTimer);
    this.#redis.disconnect();
    this.#onDown();
  }

  #eval(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    this.#asked++;
    return this.#redis.eval(script.lua, keys.length, ...keys, ...args).then(this.#onAnswer, this.#onError);
  }

  readonly #onAnswer = (reply: unknown): unknown => {
    this.#asked--;
    return reply;
  };

  readonly #onError = (error: Error): never => {
    this.#asked--;
    throw this.#fault(error);
  };

  #fault(error: Error): StoreFault {
    // After a failover the old primary is a replica: look for the new one.
    if (this.#ready && this.#options.expects === 'primary' && /\bREADONLY\b/.test(error.message)) {
      this.reconnect(error);
    }
    return faultOf(error, this.#where);
  }

  #onReady(): void {
    const session = ++this.#session;
    this.#inspect().then(
      () => {
        if (session === this.#session) this.#change(true);
      },
      (error: Error) => {
        if (session === this.#session && !this.#closed) this.reconnect(error);
      },
    );
  }

  /** @throws what makes this server unfit */
  async #inspect(): Promise<void> {
    if (this.#databaseRefused !== null) throw this.#databaseRefused;
    const { expects } = this.#options;
    const [role] = await Promise.all([
      // A user may be forbidden to ask, and a proxy may not know the command.
      this.#redis.role().then(
        ([role]: unknown[]) => role,
        () => null,
      ),
      this.#redis.ping(),
    ]);
    if (expects === 'sentinel' ? role !== null && role !== 'sentinel' : role === 'sentinel') {
      throw new StoreFault(
        'error',
        expects === 'sentinel'
          ? `${this.#where}: the server is no sentinel: write redis:// for a single server`
          : `${this.#where}: the server is a sentinel: write redis+sentinel://`,
      );
    }
    if (expects === 'primary' && role === 'slave') throw new Error('READONLY the role is that of a replica');
  }

  #onDown(): void {
    this.#session++;
    if (this.#isUntried && (this.#lastError === null || CLOSED.test(reasonIn(this.#lastError))))
      this.#lastError = new Error('the connection was closed before the first answer');
    this.#isUntried = false;
    this.#sent.clear();
    this.#databaseRefused = null;
    this.#change(false);
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const { reject } of waiters) reject(this.whyDown());
  }

  /** The library gives up where the server cannot be located; we do not. */
  #onEnd(): void {
    this.#onDown();
    if (this.#closed) return;
    this.#reconnectTimer = setTimeout(() => this.connect(), this.#reconnectMs());
  }

  #change(ready: boolean): void {
    if (this.#ready === ready) return;
    this.#ready = ready;
    this.#isUntried = false;
    if (ready) {
      this.#failuresInRow = 0;
      this.#lastError = null;
      const waiters = this.#waiters;
      this.#waiters = [];
      for (const { resolve } of waiters) resolve();
    }
    this.#options.onChange(ready);
  }

  #reconnectMs(): Millis {
    return Math.min(25 * 2 ** Math.min(++this.#failuresInRow, 6), RECONNECT_MS_MAX);
  }

  #connector(): new (options: unknown) => AbstractConnector {
    const located = async (): Promise<Endpoint> => {
      const endpoint = await this.#options.locate();
      this.#where = endpointName(endpoint);
      return endpoint;
    };
    const { tls, silenceMs } = this.#options;
    const isAsked = (): boolean => this.#asked > 0 || !this.#ready;
    return class extends AbstractConnector {
      constructor(_options: unknown) {
        super(DISCONNECT_TIMEOUT_MS);
      }

      override async connect() {
        this.connecting = true;
        const endpoint = await located();
        // `disconnect` may have been called meanwhile.
        if (!this.connecting) throw new Error('the connection is closed');
        this.stream =
          tls === null
            ? createConnection({ ...endpoint })
            : connectTls({ ...endpoint, ...tls, rejectUnauthorized: true });
        this.stream.once('error', (error: Error) => {
          this.firstError = error;
        });
        endWhenSilent(this.stream, silenceMs, isAsked);
        return this.stream;
      }
    };
  }
}

/**
 * Ends a connection on which something is asked and nothing comes. The library's own timer fires after a stall of this
 * process before the answer in the socket is read. Here time passes in ticks, and one that comes late counts as one.
 */
function endWhenSilent(stream: Socket, silenceMs: Millis, isAsked: () => boolean): void {
  let read = 0;
  let silentTicks = 0;
  const timer = setInterval(() => {
    if (stream.bytesRead !== read || !isAsked()) silentTicks = 0;
    else if (++silentTicks > SILENT_TICKS_MAX)
      stream.destroy(new Error(`Socket timeout: no answer within ${silenceMs} ms`));
    read = stream.bytesRead;
  }, silenceMs / SILENT_TICKS_MAX);
  timer.unref();
  stream.once('close', () => clearInterval(timer));
}

function reasonIn(error: Error): string {
  return `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message}`;
}

function commandOf(error: Error): string | null {
  const { command } = error as { readonly command?: { readonly name?: string } };
  return command?.name?.toLowerCase() ?? null;
}

/** For promises whose failure the connection's own events tell as well. */
function toldByEvents(): void {}
