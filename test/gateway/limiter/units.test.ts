import { join } from 'node:path';
import t from 'tap';
import { type BodyLength, unitsOf } from '#gateway/limiter/units.ts';
import type { Cost } from '#gateway/policy/policy.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const PAGE = join(import.meta.dirname, 'units.md');
const NO_BODY: BodyLength = { hasBody: false, contentLength: null };

function check(heading: string, units: (asked: string) => number): void {
  t.test(heading, async (t) => {
    for (const [asked = '', expected] of casesUnder(PAGE, heading))
      t.equal(String(units(asked)), expected, asked);
  });
}

check('A cost header is a whole number from one to the limit', (fields) => {
  const headers = fields.split(' | ').flatMap((field) => /^([^:]+): ?(.*)$/.exec(field)?.slice(1) ?? []);
  return unitsOf({ cost: { kind: 'header', header: 'x-cost' } }, 100, headers, NO_BODY);
});

check('A reply of unknown length reserves a hundredth of what can be used at once', (asked) => {
  const [capacity, reserve] = asked.split(' ');
  const cost: Cost = { kind: 'reply-bytes', reserve: reserve === 'none' ? null : Number(reserve) };
  return unitsOf({ cost }, Number(capacity), [], NO_BODY);
});

check('The cost of a body is its announced length', (sent) => {
  const contentLength = /^\d+$/.test(sent) ? Number(sent) : null;
  const body = { hasBody: sent !== 'none' && sent !== '0', contentLength };
  return unitsOf({ cost: { kind: 'body-bytes', unannounced: 50 } }, 100, [], body);
});
