import type { RefusedAddresses } from '#gateway/observe/refused-addresses.ts';
import { type OpenPart, optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { secondsOf } from '#gateway/policy/duration.ts';
import type { Millis } from '#shared/clock.ts';
import type { Variable } from '#shared/configuration.ts';
import { Addresses } from './addresses.ts';

const VARIABLES = [
  {
    name: 'GATEWAY_SHOW_ADDRESSES',
    default: 'off',
    meaning:
      'how long the gateway keeps the addresses of refused clients in memory, to show them on the page and in `why`: a time such as `10m`, at most `24h`; or `off`',
  },
] as const satisfies readonly Variable[];

const KEPT_MS_MAX: Millis = 24 * 3_600_000;

interface AddressesSettings {
  /** null if addresses are kept only for the minutes that an operator allows. */
  readonly keptMs: Millis | null;
}

export const addresses = optionalPart({
  name: 'addresses',
  variables: VARIABLES,
  read(read, { warnings }): AddressesSettings {
    const keptMs = read.parse('GATEWAY_SHOW_ADDRESSES', null, keptTime);
    if (keptMs !== null)
      warnings.push(
        `GATEWAY_SHOW_ADDRESSES=${read.text('GATEWAY_SHOW_ADDRESSES')}: operators see the addresses of refused clients, which stay in memory for that time`,
      );
    return { keptMs };
  },
  open: openAddresses,
  supervise: openAddresses,
});

function openAddresses(
  { keptMs }: AddressesSettings,
  { clock }: Surroundings,
): OpenPart<{ readonly addresses: RefusedAddresses }, unknown> {
  const kept = new Addresses(keptMs, clock);
  return { slots: { addresses: kept }, close: () => kept.close() };
}

/** @returns null for `off` */
export function keptTime(value: string): Millis | null {
  if (value === 'off') return null;
  const ms = /^\d{1,5}[smh]$/.test(value) ? secondsOf(value) * 1000 : 0;
  if (ms === 0 || ms > KEPT_MS_MAX) throw new Error('it must be a time such as 30s, 10m or 24h, or off');
  return ms;
}
