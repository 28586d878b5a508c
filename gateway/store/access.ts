import { parseStoreAddress, type StoreAddress } from './address.ts';
import { readStoreTls, type StoreTls } from './tls.ts';

/** Where the store is and how the gateway gets in. Passwords and the private key are in here. */
export interface StoreAccess {
  readonly address: StoreAddress;
  readonly tls: StoreTls | null;
}

/**
 * Reads GATEWAY_REDIS_URL and the files that it names.
 *
 * @returns null when it is unset
 * @throws Error with one sentence that says what is wrong and names no secret
 */
export function readStoreAccess(url: string): StoreAccess | null {
  if (url === '') return null;
  const address = parseStoreAddress(url);
  return { address, tls: readStoreTls(address) };
}
