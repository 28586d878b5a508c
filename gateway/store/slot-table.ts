/** What the nodes of a Cluster say about who serves which slot. */
import type { Endpoint } from './address.ts';
import { SLOTS } from './key-slot.ts';

export interface SlotRange {
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
  readonly primary: Endpoint;
}

export interface Redirection {
  /** moved: for good. asking: for this call only, as the slot is on its way. */
  readonly kind: 'moved' | 'asking';
  readonly slot: number;
  readonly endpoint: Endpoint;
}

/**
 * @param reply of CLUSTER SLOTS: [first, last, [host, port, …] of the primary, … of its replicas] of each range
 * @param asked host of the node that answered: what a node calls itself that does not know its own address
 * @returns the ranges that make sense; empty for a node that is in no cluster
 */
export function slotRanges(reply: unknown, asked: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((range: unknown): SlotRange[] => {
    if (!Array.isArray(range)) return [];
    const [first, last, primary]: unknown[] = range;
    if (!Array.isArray(primary)) return [];
    const [host, port]: unknown[] = primary;
    if (!isSlot(first) || !isSlot(last) || !isPort(port)) return [];
    const known = typeof host === 'string' && host !== '' && host !== '?';
    return [{ first, last, primary: { host: known ? host : asked, port } }];
  });
}

/** @returns null for every other error */
export function redirectionOf(message: string, asked: string): Redirection | null {
  const [, word, slot, host, port] = /^(MOVED|ASK) (\d{1,5}) (\S*):(\d{1,5})$/.exec(message) ?? [];
  if (!isSlot(Number(slot)) || !isPort(Number(port))) return null;
  return {
    kind: word === 'MOVED' ? 'moved' : 'asking',
    slot: Number(slot),
    endpoint: { host: host || asked, port: Number(port) },
  };
}

function isSlot(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < SLOTS;
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535;
}
