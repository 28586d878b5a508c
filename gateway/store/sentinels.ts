/**
 * Asks all sentinels for the primary. The highest configuration epoch wins, because a sentinel that is cut off from the
 * others still names the old primary, with a lower epoch.
 */
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Endpoint, SentinelAddress } from './address.ts';
import { StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';
import type { StoreTls } from './tls.ts';

interface SentinelsOptions {
  readonly address: SentinelAddress;
  readonly tls: StoreTls | null;
  readonly silenceMs: Millis;
}

interface Named {
  readonly endpoint: Endpoint;
  readonly epoch: number;
}

/** Sentinels that have not answered after this time are ignored. */
const ANSWER_MS_MAX: Millis = 500;

export class Sentinels {
  readonly #service: string;
  readonly #nodes: readonly RedisNode[];

  constructor({ address, tls, silenceMs }: SentinelsOptions) {
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
          onChange: () => {},
        }),
    );
  }

  connect(): void {
    for (const node of this.#nodes) node.connect();
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
