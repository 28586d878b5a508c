/** The cases of user-agent.md. */
import { join } from 'node:path';
import t from 'tap';
import { readUserAgent } from '#api/resources/responses/user-agent.ts';
import { deviceOf } from '#api/resources/user/state.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const FILE = join(import.meta.dirname, 'user-agent.md');

t.test('names browser, system and device', async (t) => {
  for (const [header = '', expected] of casesUnder(FILE, 'Browser, system and device of a response')) {
    const { browser = '-', os = '-', device } = readUserAgent(header);
    t.equal(`${browser}/${os}/${device}`, expected, header);
  }
});

t.test('tells phones from desktops', async (t) => {
  for (const [header = '', expected] of casesUnder(FILE, 'A phone or a desktop, for segments'))
    t.equal(deviceOf(header), expected, header);
});
