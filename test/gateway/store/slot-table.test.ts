import { join } from 'node:path';
import t from 'tap';
import { endpointName } from '#gateway/store/address.ts';
import { redirectionOf, slotRanges } from '#gateway/store/slot-table.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const PAGE = join(import.meta.dirname, 'slots.md');

t.test('CLUSTER SLOTS: malformed entries are ignored', async (t) => {
  for (const [reply = '', ranges] of casesUnder(PAGE, 'Ranges of slots')) {
    const found = slotRanges(JSON.parse(reply), 'asked').map(
      ({ first, last, primary }) => `${first}-${last} ${endpointName(primary)}`,
    );
    t.equal(found.join(', ') || 'none', ranges, reply);
  }
});

t.test('reads MOVED and ASK, and ignores other errors', async (t) => {
  for (const [error = '', redirection] of casesUnder(PAGE, 'Redirections')) {
    const found = redirectionOf(error, 'asked');
    const told = found === null ? 'none' : `${found.kind} ${found.slot} ${endpointName(found.endpoint)}`;
    t.equal(told, redirection, error);
  }
});
