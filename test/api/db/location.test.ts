/** Holds locations.md. */
import { join } from 'node:path';
import t from 'tap';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { difference, parsePattern } from '#test/conversations/document.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const FILE = join(import.meta.dirname, 'locations.md');

t.test('read', async (t) => {
  for (const [url = '', expected = ''] of casesUnder(FILE, 'Read')) {
    const found = JSON.parse(JSON.stringify(parseDatabaseUrl(url, '/srv')));
    t.equal(difference(parsePattern(expected), found, new Map(), url), null);
    t.notMatch(JSON.stringify(found), 'p@ss', 'a copy in a log has no password');
  }
});

t.test('refused', async (t) => {
  for (const [url = '', expected = ''] of casesUnder(FILE, 'Refused, without the password'))
    try {
      parseDatabaseUrl(url, '/srv');
      t.fail(`${url} is accepted`);
    } catch (error) {
      const { message } = error as Error;
      t.equal(difference(expected, message, new Map(), url), null);
      t.notMatch(message, /hunter2|ter2@/);
    }
});
