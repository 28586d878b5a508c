import type { StandaloneAddress } from './address.ts';
import type { ConnectionOptions, StoreConnection, StoreScript } from './connection.ts';
import type { StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';
import type { StoreTls } from './tls.ts';

export class StandaloneConnection implements StoreConnection {
  readonly #node: RedisNode;

  constructor(address: StandaloneAddress, tls: StoreTls | null, { silenceMs, onChange }: ConnectionOptions) {
    const { endpoint, database, username, password } = address;
    this.#node = new RedisNode({
      locate: () => endpoint,
      expects: 'primary',
      database,
      username,
      password,
      tls,
      silenceMs,
      onChange,
    });
  }

  get ready(): boolean {
    return this.#node.ready;
  }

  whyDown(): StoreFault {
    return this.#node.whyDown();
  }

  slotOf(): null {
    return null;
  }

  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#node.run(script, keys, args);
  }

  connect(): Promise<void> {
    this.#node.connect();
    return this.#node.whenReady();
  }

  close(): void {
    this.#node.close();
  }
}
