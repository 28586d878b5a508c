import type { StandaloneAddress } from './address.ts';
import type { ConnectionOptions, StoreConnection, StoreScript } from './connection.ts';
import type { StoreFault } from './fault.ts';
import { type NodeOptions, RedisNode } from './node.ts';
import type { StoreTls } from './tls.ts';

type Login = Pick<StandaloneAddress, 'database' | 'username' | 'password'>;

/** One server that takes writes. */
export class PrimaryConnection implements StoreConnection {
  protected readonly node: RedisNode;

  /** @param locate finds the server before each attempt to connect */
  constructor(
    { database, username, password }: Login,
    tls: StoreTls | null,
    { silenceMs, onChange }: ConnectionOptions,
    locate: NodeOptions['locate'],
  ) {
    const login = { database, username, password };
    this.node = new RedisNode({ locate, expects: 'primary', ...login, tls, silenceMs, onChange });
  }

  get ready(): boolean {
    return this.node.ready;
  }

  whyDown(): StoreFault {
    return this.node.whyDown();
  }

  slotOf(): null {
    return null;
  }

  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.node.run(script, keys, args);
  }

  connect(): Promise<void> {
    this.node.connect();
    return this.node.whenReady();
  }

  close(): void {
    this.node.close();
  }
}
