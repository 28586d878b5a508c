import { parseStoreAddress, type StoreAddress } from './address.ts';
import { readStoreTls, type StoreTls } from './tls.ts';

/** How to reach the store. Contains secrets: passwords and the private key. */
export interface StoreAccess {
  readonly address: StoreAddress;
  readonly tls: StoreTls | null;
}

/**
 * Reads GATEWAY_REDIS_URL and the files that it names.
 *
 * @returns null if it is unset
 * @throws Error with the mistake, without quoting a secret
 */
export function readStoreAccess(url: string): StoreAccess | null {
  if (url === '') return null;
  const address = parseStoreAddress(url);
  return { address, tls: readStoreTls(address) };
}
