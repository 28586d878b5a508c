/**
 * Connects to the primary that Sentinel names. The sentinels are asked before every attempt to connect, and twice a
 * second while connected. After a failover the old primary may still be reachable, and accept writes that get lost.
 *
 * All sentinels are asked. The highest configuration epoch wins, because a sentinel that is cut off from the others still
 * names the old primary, with a lower epoch.
 */
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { StoreTls } from './access.ts';
import { type Endpoint, endpointName, type SentinelAddress } from './address.ts';
import type { ConnectionOptions } from './connection.ts';
import { StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';

interface Named {
  readonly endpoint: Endpoint;
  readonly epoch: number;
}

/** Sentinels that have not answered after this time are ignored. */
const ANSWER_MS_MAX: Millis = 500;

class Sentinels {
  readonly #service: string;
  readonly #nodes: readonly RedisNode[];

  constructor(address: SentinelAddress, tls: StoreTls | null, silenceMs: Millis) {
    this.#service = address.service;
    this.#nodes = address.sentinels.map(
      (endpoint) =>
        new RedisNode({
          locate: () => endpoint,
          expects: 'sentinel',
          database: 0,
          username: null,
          password: address.sentinelPassword,
          tls,
          silenceMs,
          onChange: () => undefined,
        }),
    );
  }

  connect(): void {
    for (const node of this.#nodes) node.start();
  }

  close(): void {
    for (const node of this.#nodes) node.close();
  }

  /** @throws StoreFault with the reason of the first sentinel, if none names a primary */
  async primary(): Promise<Endpoint> {
    const answers = await Promise.allSettled(
      this.#nodes.map((node) => within(ANSWER_MS_MAX, this.#ask(node))),
    );
    let youngest: Named | null = null;
    let why: unknown;
    for (const answer of answers) {
      if (answer.status === 'rejected') why ??= answer.reason;
      else if (youngest === null || answer.value.epoch > youngest.epoch) youngest = answer.value;
    }
    if (youngest !== null) return youngest.endpoint;
    throw new StoreFault('disconnected', `no sentinel names the primary: ${(why as Error).message}`, why);
  }

  async #ask(node: RedisNode): Promise<Named> {
    await node.whenReady();
    // SENTINEL MASTER gives the epoch; the address alone may come from a failover that has not finished.
    const [address, master] = await Promise.all([
      node.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#service),
      node.ask('SENTINEL', 'MASTER', this.#service),
    ]);
    const [host, port] = texts(address);
    if (host === undefined || port === undefined) throw new Error('the sentinel knows no primary');
    const fields = texts(master);
    const epoch = Number(fields[fields.indexOf('config-epoch') + 1]);
    return { endpoint: { host, port: Number(port) }, epoch: Number.isFinite(epoch) ? epoch : 0 };
  }
}

function texts(reply: unknown): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}

const LOOK_EVERY_MS: Millis = 500;

export class SentinelConnection extends RedisNode {
  readonly #sentinels: Sentinels;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(address: SentinelAddress, tls: StoreTls | null, options: ConnectionOptions) {
    const sentinels = new Sentinels(address, tls, options.silenceMs);
    const { database, username, password } = address;
    const login = { database, username, password, tls };
    super({ ...options, ...login, expects: 'primary', locate: () => sentinels.primary() });
    this.#sentinels = sentinels;
  }

  override connect(): Promise<void> {
    this.#sentinels.connect();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
    return super.connect();
  }

  override close(): void {
    clearInterval(this.#timer);
    super.close();
    this.#sentinels.close();
  }

  #look(): void {
    if (this.#isLooking || !this.ready) return;
    this.#isLooking = true;
    const from = this.endpoint;
    this.#sentinels
      .primary()
      .then(
        (named) => {
          if (!this.ready || from === null || this.endpoint !== from) return;
          if (endpointName(named) === endpointName(from)) return;
          const message = `the sentinels name ${endpointName(named)} as primary in place of ${endpointName(from)}`;
          this.reconnect(new StoreFault('disconnected', message));
        },
        // If no sentinel answers, keep the current primary.
        () => undefined,
      )
      .finally(() => {
        this.#isLooking = false;
      });
  }
}
