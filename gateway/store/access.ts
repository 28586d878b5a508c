import type { StoreAddress } from './address.ts';
import type { StoreTls } from './tls.ts';

/** Where the store is and how it lets us in: passwords and the private key are in here. */
export interface StoreAccess {
  readonly address: StoreAddress;
  /** null: the address asks for none. */
  readonly tls: StoreTls | null;
  /** null: the sentinels ask for none. */
  readonly sentinelPassword: string | null;
}
