import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { StoreAccess } from './access.ts';
import { ClusterConnection } from './cluster.ts';
import type { ConnectionOptions, StoreConnection, StoreScript } from './connection.ts';
import { RedisNode } from './node.ts';
import { SentinelConnection } from './sentinel.ts';

export function openStore({ address, tls }: StoreAccess, options: ConnectionOptions): StoreConnection {
  switch (address.kind) {
    case 'standalone': {
      const { endpoint, database, username, password } = address;
      const login = { database, username, password, tls };
      return new RedisNode({ ...options, ...login, expects: 'primary', locate: () => endpoint });
    }
    case 'sentinel':
      return new SentinelConnection(address, tls, options);
    case 'cluster':
      return new ClusterConnection(address, tls, options);
  }
}

const CONNECT_MS: Millis = 2000;
const ANSWER_MS: Millis = 2000;

/** A connection for calls that no request waits for. The first call opens it. */
export class LazyStore {
  readonly #access: StoreAccess;
  #connection: StoreConnection | null = null;
  #connecting: Promise<void> | null = null;

  constructor(access: StoreAccess) {
    this.#access = access;
  }

  /** Waits for the first attempt to connect. Later calls fail at once while there is no connection. */
  async run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    this.#connection ??= openStore(this.#access, { silenceMs: ANSWER_MS, onChange: () => undefined });
    this.#connecting ??= this.#connection.connect();
    if (!this.#connection.ready) {
      // After a failed attempt, the connection keeps trying.
      await within(CONNECT_MS, this.#connecting).catch(() => undefined);
      if (!this.#connection.ready) throw this.#connection.whyDown();
    }
    return within(ANSWER_MS, this.#connection.run(script, keys, args));
  }

  close(): void {
    this.#connection?.close();
  }
}
