import type { XStatic } from 'typebox/schema';
import type { Cost } from '#gateway/policy/policy.ts';
import { policyKey } from './key.ts';
import { fieldName, object, only, units } from './schema-parts.ts';

const SCHEMA = {
  anyOf: [
    units,
    { type: 'string', const: 'body-bytes' },
    only('header', fieldName),
    object(['replyHeader', 'reserve'], { replyHeader: fieldName, reserve: units }, 'a cost in the reply'),
    only('body-bytes', units),
    { type: 'string', const: 'reply-bytes' },
    only('reply-bytes', units),
  ],
  description:
    'how much of the limit a request uses: a number (1 unless given), { header: NAME }, { replyHeader: NAME, reserve: N } if a header of the reply reports it, body-bytes, { body-bytes: N } with the cost of a body of unknown length, reply-bytes, or { reply-bytes: N } with the bytes to reserve until the reply ends',
} as const;

export const cost = policyKey({
  schema: SCHEMA,
  default: 1,
  see: '#costs',
  read(written, { isInFlight, capacity, report }): Cost {
    if (isInFlight) return { kind: 'units', units: 1 };
    const cost = costOf(written);
    const mistake = neverPasses(cost, capacity, `at most ${capacity} may be used at once`);
    if (mistake !== null) report([], mistake, `write at most ${capacity}`);
    return cost;
  },
  // Only costs that depend on the reply must be equal in policies that share a bucket.
  counted: ({ cost }) => (cost.kind === 'reply-header' ? cost.header : cost.kind === 'reply-bytes'),
  countedAs: 'cost that depends on the reply',
});

function costOf(written: XStatic<typeof SCHEMA>): Cost {
  if (typeof written === 'number') return { kind: 'units', units: written };
  // A body of unknown length (null) costs the whole capacity.
  if (written === 'body-bytes') return { kind: 'body-bytes', unannounced: null };
  if (written === 'reply-bytes') return { kind: 'reply-bytes', reserve: null };
  if ('reply-bytes' in written) return { kind: 'reply-bytes', reserve: written['reply-bytes'] };
  if ('header' in written) return { kind: 'header', header: written.header.toLowerCase() };
  if ('replyHeader' in written)
    return { kind: 'reply-header', header: written.replyHeader.toLowerCase(), reserve: written.reserve };
  return { kind: 'body-bytes', unannounced: written['body-bytes'] };
}

/** @param said why more than the capacity never passes */
export function neverPasses(cost: Cost, capacity: number, said: string): string | null {
  if (cost.kind === 'units' && cost.units > capacity)
    return `a request costs ${cost.units} and ${said}, so none could ever pass`;
  if ((cost.kind === 'reply-header' || cost.kind === 'reply-bytes') && (cost.reserve ?? 0) > capacity)
    return `a request reserves ${cost.reserve} and ${said}, so none could ever pass`;
  if (cost.kind === 'body-bytes' && (cost.unannounced ?? 0) > capacity)
    return `a body of unknown length costs ${cost.unannounced} and ${said}, so none could ever pass`;
  return null;
}
