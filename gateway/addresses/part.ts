import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { secondsOf } from '#gateway/policy/keys/schema-parts.ts';
import type { Millis } from '#shared/clock.ts';
import { RefusedAddresses } from './addresses.ts';

const KEPT_MS_MAX: Millis = 24 * 3_600_000;

export const addresses = optionalPart({
  variables: [
    {
      name: 'GATEWAY_SHOW_ADDRESSES',
      default: 'off',
      meaning:
        'how long the gateway keeps the [addresses of refused clients](page.md#addresses-of-refused-clients) in memory: a time such as `10m`, at most `24h`; or `off`',
    },
  ],
  read(read, { warnings }) {
    const keptMs = read.parse('GATEWAY_SHOW_ADDRESSES', null, keptTime);
    if (keptMs === null) return null;
    warnings.push(
      `GATEWAY_SHOW_ADDRESSES=${read.text('GATEWAY_SHOW_ADDRESSES')}: operators see the addresses of refused clients, which stay in memory for that time`,
    );
    const open = ({ clock }: Surroundings) => {
      const kept = new RefusedAddresses(keptMs, clock);
      return { slots: { addresses: kept }, close: () => kept.close() };
    };
    return { open, supervise: open };
  },
});

/** @returns null for `off` */
export function keptTime(value: string): Millis | null {
  if (value === 'off') return null;
  const ms = /^\d{1,5}[smh]$/.test(value) ? secondsOf(value) * 1000 : 0;
  if (ms === 0 || ms > KEPT_MS_MAX) throw new Error('it must be a time such as 30s, 10m or 24h, or off');
  return ms;
}
