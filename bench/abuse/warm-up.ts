/** Polite requests from addresses that nobody else has, before anything is measured: what runs for days is warm. */
import { victimOf, visit } from './victim.ts';

const ADDRESSES = 4;
const SECONDS = 1;
/** Below what any limit stops: 25 on each route of the shipped table. */
const PER_SECOND = 200;

export async function warmUp(port: number, isTls: boolean): Promise<void> {
  const visitor = victimOf('stranger', '');
  await Promise.all(
    Array.from({ length: ADDRESSES }, (_, i) =>
      visit(
        { ...visitor, address: `127.0.1.${i + 1}`, key: `fbk_valid_warm${i}`, perSecond: PER_SECOND, isTls },
        port,
        SECONDS,
      ),
    ),
  );
}
