/**
 * Connection to one Redis server. The only file that knows the client library.
 *
 * A connection is ready once the server has proven to have the expected role (primary, Cluster node or sentinel) and to
 * execute commands. Otherwise it is closed, and retried after a delay that grows to a second, or to five seconds if the
 * server answers with errors. The library's Cluster and
 * Sentinel clients are not used: they resend calls after a broken connection, queue calls while connecting, and leave
 * rejected promises unhandled.
 */
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis } from 'ioredis';
import type { Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import type { StoreTls } from './access.ts';
import { type Endpoint, endpointName, type UnixEndpoint } from './address.ts';
import type { ConnectionOptions, StoreConnection, StoreScript } from './connection.ts';
import { faultOf, StoreFault } from './fault.ts';

interface NodeOptions extends ConnectionOptions {
  readonly locate: () => Endpoint | UnixEndpoint | Promise<Endpoint>;
  readonly expects: 'primary' | 'cluster-node' | 'sentinel';
  readonly database: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly tls: StoreTls | null;
}

const CLOSED = /EPIPE|ECONNRESET|closed/;
const SILENT = /^Socket timeout/;
const RECONNECT_MS_MAX: Millis = 1000;
/** The same for a server that answers with errors. It does not help to ask it often. */
const REFUSED_MS_MAX: Millis = 5000;
/** The first tick may be short, so a wait takes at least one less. */
const SILENT_TICKS_MAX = 11;
/** The least time that a new connection may be silent. The library gives up a little sooner, with a better reason. */
const CONNECT_MS: Millis = 2500;
/** How long `disconnect` waits for calls in flight. */
const DISCONNECT_TIMEOUT_MS: Millis = 200;

export class RedisNode implements StoreConnection {
  readonly #options: NodeOptions;
  readonly #redis: Redis;
  ready = false;
  #closed = false;
  /** Number of the current connection. Results of earlier connections are ignored. */
  #session = 0;
  #failuresInRow = 0;
  /** The server of the current or the last attempt to connect; null before the first. */
  endpoint: Endpoint | UnixEndpoint | null = null;
  #lastError: Error | null = null;
  /** Whether the socket is connected, but the server has not answered yet. */
  #isUntried = false;
  /** If SELECT fails, the library still reports ready and uses database 0. */
  #databaseRefused: Error | null = null;
  readonly #sent = new Set<StoreScript>();
  #asked = 0;
  /** It resolves for all who wait until the node is ready; null if nobody waits. */
  #waiting: PromiseWithResolvers<void> | null = null;
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
      // This class checks the role itself, and reconnects when it changes.
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

  get #where(): string {
    return this.endpoint === null ? 'the store' : endpointName(this.endpoint);
  }

  whyDown(): StoreFault {
    return faultOf(this.#lastError ?? new Error('the connection is closed'), this.#where);
  }

  slotOf(): number | null {
    return null;
  }

  connect(): Promise<void> {
    this.start();
    return this.whenReady();
  }

  /** Connects, and reconnects until `close`. */
  start(): void {
    // Return if the node is closed. Otherwise the library would connect again and never stop trying.
    if (this.#closed) return;
    this.#redis.connect().catch(reportedByEvents);
  }

  /** @throws StoreFault if the current attempt, or else the next one, fails */
  whenReady(): Promise<void> {
    if (this.ready) return Promise.resolve();
    if (this.#closed) return Promise.reject(this.whyDown());
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  /** @throws StoreFault with the server's error as its cause */
  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!this.ready) return Promise.reject(this.whyDown());
    // The first call on a connection sends the text: a NOSCRIPT reply would change the order of execution.
    if (!this.#sent.has(script)) {
      this.#sent.add(script);
      return this.#eval(script, keys, args);
    }
    this.#asked++;
    return this.#redis
      .evalsha(script.sha1, keys.length, ...keys, ...args)
      .then(this.#onAnswer, (error: Error) => {
        this.#asked--;
        if (!error.message.startsWith('NOSCRIPT') || !this.ready) throw this.#fault(error);
        return this.#eval(script, keys, args);
      });
  }

  /** Runs a script on keys of a slot that is being migrated to this node (ASKING). */
  runAsking(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!this.ready) return Promise.reject(this.whyDown());
    // If it fails, the call that follows on the same connection fails too.
    this.#redis.asking().catch(reportedByEvents);
    return this.#eval(script, keys, args);
  }

  ask(command: string, ...args: readonly string[]): Promise<unknown> {
    if (!this.ready) return Promise.reject(this.whyDown());
    this.#asked++;
    return this.#redis.call(command, ...args).then(this.#onAnswer, this.#onError);
  }

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
    // READONLY: after a failover the old primary is a replica, so the new one must be found.
    if (this.ready && this.#options.expects === 'primary' && /\bREADONLY\b/.test(error.message)) {
      this.reconnect(error);
    }
    const isSilent = this.#lastError !== null && SILENT.test(this.#lastError.message);
    return isSilent ? this.whyDown() : faultOf(error, this.#where);
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

  /** @throws Error if this server cannot be used */
  async #inspect(): Promise<void> {
    if (this.#databaseRefused !== null) throw this.#databaseRefused;
    const { expects } = this.#options;
    const [role] = await Promise.all([
      // The user may lack the permission for ROLE, and a proxy may not know it.
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
          ? `${this.#where}: the server is not a sentinel: write redis:// for a single server`
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
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.reject(this.whyDown());
  }

  /** The library stops trying if `locate` fails, so this starts another attempt. */
  #onEnd(): void {
    this.#onDown();
    if (this.#closed) return;
    this.#reconnectTimer = setTimeout(() => this.start(), this.#reconnectMs());
  }

  #change(ready: boolean): void {
    if (this.ready === ready) return;
    this.ready = ready;
    this.#isUntried = false;
    if (ready) {
      this.#failuresInRow = 0;
      this.#lastError = null;
      this.#waiting?.resolve();
      this.#waiting = null;
    }
    this.#options.onChange(ready);
  }

  #reconnectMs(): Millis {
    const isRefused = this.#lastError?.name === 'ReplyError';
    return Math.min(
      25 * 2 ** Math.min(++this.#failuresInRow, 8),
      isRefused ? REFUSED_MS_MAX : RECONNECT_MS_MAX,
    );
  }

  #connector(): new (options: unknown) => AbstractConnector {
    const located = async (): Promise<Endpoint | UnixEndpoint> => {
      const endpoint = await this.#options.locate();
      this.endpoint = endpoint;
      return endpoint;
    };
    const { tls, silenceMs } = this.#options;
    const silenceMsMax = (): Millis | null => {
      if (!this.ready) return Math.max(silenceMs, CONNECT_MS);
      return this.#asked > 0 ? silenceMs : null;
    };
    return class extends AbstractConnector {
      constructor(_options: unknown) {
        super(DISCONNECT_TIMEOUT_MS);
      }

      override async connect() {
        this.connecting = true;
        const endpoint = await located();
        // The connection may have been closed by `disconnect` in the meantime.
        if (!this.connecting) throw new Error('the connection is closed');
        this.stream =
          tls === null
            ? createConnection({ ...endpoint })
            : connectTls({ ...endpoint, ...tls, rejectUnauthorized: true });
        this.stream.once('error', (error: Error) => {
          this.firstError = error;
        });
        endWhenSilent(this.stream, silenceMs / SILENT_TICKS_MAX, silenceMsMax);
        return this.stream;
      }
    };
  }
}

/**
 * Closes a connection on which a call waits and no data arrives. Time is counted in ticks, and a late tick counts once.
 * Otherwise, after a stall of this process, a timer would fire before the waiting answer is read. After a stall of the
 * whole machine the server has not run either.
 *
 * @param silenceMsMax returns how long the connection may be silent; null if nothing is expected
 */
function endWhenSilent(stream: Socket, tickMs: Millis, silenceMsMax: () => Millis | null): void {
  let read = 0;
  let silentTicks = 0;
  const timer = setInterval(() => {
    const most = silenceMsMax();
    silentTicks = stream.bytesRead === read && most !== null ? silentTicks + 1 : 0;
    read = stream.bytesRead;
    if (most === null || silentTicks < Math.round(most / tickMs)) return;
    // Timers run before sockets are read, so an answer that has arrived is read first.
    setImmediate(() => {
      if (stream.bytesRead === read)
        stream.destroy(new Error(`Socket timeout: no answer within ${Math.round(most)} ms`));
    });
  }, tickMs);
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

/** Ignores a rejection that the connection's events report too. */
function reportedByEvents(): void {}
