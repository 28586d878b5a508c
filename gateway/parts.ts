/** The optional parts of the gateway, in the order in which they read their settings and are opened. See part/part.ts. */

import type { RefusedAddresses } from './addresses/addresses.ts';
import { addresses } from './addresses/part.ts';
import { decisionListener } from './decision-listener/part.ts';
import { proxyProtocol } from './listen/proxy-protocol/part.ts';
import type { ListenerCore, ServerSlots } from './listen/server.ts';
import { tls } from './listen/tls/part.ts';
import { accessLog } from './observe/access-log/part.ts';
import { admin, type OperatedGateway } from './operate/admin/part.ts';
import { type Lives, together } from './part/life.ts';
import type { OpenPart, OptionalPart, Surroundings, SwitchedOn } from './part/part.ts';
import { protection } from './protection/part.ts';
import type { OpenProtection } from './proxy/protected.ts';

export const PARTS: Readonly<Record<string, OptionalPart<PartInUse>>> = {
  accessLog,
  tls,
  proxyProtocol,
  admin,
  decisionListener,
  addresses,
  protection,
};

/** Everything that parts add to the request path; null if the part is off. */
interface Slots extends ServerSlots {
  readonly addresses: RefusedAddresses | null;
  readonly openProtection: OpenProtection | null;
}

const NO_SLOTS: Slots = {
  accessLog: null,
  introductions: null,
  handshakes: null,
  addresses: null,
  openProtection: null,
};

export type PartInUse = SwitchedOn<Partial<Slots>, ListenerCore, OperatedGateway>;

export interface OpenParts extends Lives<ListenerCore> {
  readonly slots: Slots;
}

/** Opens all parts in use. They act as one, in the order of the list. */
export async function openParts(
  parts: readonly PartInUse[],
  surroundings: Surroundings,
  where: 'serving' | 'supervisor' = 'serving',
): Promise<OpenParts> {
  const opened: OpenPart<Partial<Slots>, ListenerCore>[] = [];
  try {
    for (const part of parts)
      opened.push((await (where === 'serving' ? part.open : part.supervise)?.(surroundings)) ?? {});
  } catch (error) {
    await together(opened).close();
    throw error;
  }
  return { ...together(opened), slots: Object.assign({}, NO_SLOTS, ...opened.map(({ slots }) => slots)) };
}
