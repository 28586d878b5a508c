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
import { type AddressOf, type Endpoint, endpointName } from './address.ts';
import type { ConnectionOptions } from './connection.ts';
import { StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';

interface Named {
  readonly endpoint: Endpoint;
  readonly epoch: number;
}

/** Sentinels that have not answered after this time are ignored. */
const ANSWER_MS_MAX: Millis = 500;

/** @throws StoreFault with the reason of the first sentinel, if none names a primary */
async function primaryOf(sentinels: readonly RedisNode[], service: string): Promise<Endpoint> {
  const answers = await Promise.allSettled(
    sentinels.map((sentinel) => within(ANSWER_MS_MAX, primaryBy(sentinel, service))),
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

async function primaryBy(sentinel: RedisNode, service: string): Promise<Named> {
  await sentinel.whenReady();
  // SENTINEL MASTER gives the epoch; the address alone may come from a failover that has not finished.
  const [address, master] = await Promise.all([
    sentinel.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', service),
    sentinel.ask('SENTINEL', 'MASTER', service),
  ]);
  const [host, port] = texts(address);
  if (host === undefined || port === undefined) throw new Error('the sentinel knows no primary');
  const fields = texts(master);
  const epoch = Number(fields[fields.indexOf('config-epoch') + 1]);
  return { endpoint: { host, port: Number(port) }, epoch: Number.isFinite(epoch) ? epoch : 0 };
}

function texts(reply: unknown): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}

const LOOK_EVERY_MS: Millis = 500;

export class SentinelConnection extends RedisNode {
  readonly #sentinels: readonly RedisNode[];
  readonly #service: string;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(address: AddressOf<'sentinel'>, tls: StoreTls | null, options: ConnectionOptions) {
    const { database, username, password, sentinelPassword, service } = address;
    const asked = {
      database: 0,
      username: null,
      password: sentinelPassword,
      tls,
      expects: 'sentinel',
    } as const;
    const sentinels = address.sentinels.map(
      (endpoint) =>
        new RedisNode({ ...options, ...asked, locate: () => endpoint, onChange: () => undefined }),
    );
    const login = { database, username, password, tls };
    super({ ...options, ...login, expects: 'primary', locate: () => primaryOf(sentinels, service) });
    this.#sentinels = sentinels;
    this.#service = service;
  }

  override connect(): Promise<void> {
    for (const sentinel of this.#sentinels) sentinel.start();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
    return super.connect();
  }

  override close(): void {
    clearInterval(this.#timer);
    super.close();
    for (const sentinel of this.#sentinels) sentinel.close();
  }

  #look(): void {
    if (this.#isLooking || !this.ready) return;
    this.#isLooking = true;
    const from = this.endpoint;
    primaryOf(this.#sentinels, this.#service)
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
