/** Loopback has sixteen million addresses: each party of the bench gets one of its own. */
export const ATTACKER_ADDRESS = '127.0.0.2';
export const VICTIM_ADDRESS = '127.0.0.3';
