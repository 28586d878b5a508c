import { join } from 'node:path';
import t from 'tap';
import { endpointName, parseStoreAddress } from '#gateway/store/address.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const CASES = join(import.meta.dirname, 'addresses.md');
const DEFAULTS = {
  ...{ tls: false, username: null, password: null, timeoutMs: 50 },
  tlsFiles: { ca: '', cert: '', key: '' },
};

t.test('reads valid addresses', async (t) => {
  for (const [text = '', meaning = ''] of casesUnder(CASES, 'Understood'))
    t.strictSame(parseStoreAddress(text), { ...DEFAULTS, ...JSON.parse(meaning) }, text);
});

t.test('invalid addresses get one sentence', async (t) => {
  for (const [text = '', message = 'no message'] of casesUnder(CASES, 'Refused'))
    t.throws(() => parseStoreAddress(text), { message }, text);
  t.throws(() => parseStoreAddress(`unix:/${'a'.repeat(108)}`), { message: /at most 107 bytes/ });
});

t.test('no message contains the password', async (t) => {
  for (const text of [
    'redis://u:hunter2@h:0',
    'redis://u:hunter2@',
    'redis://u:hunter2@h?x',
    'redis://u:a?hunter2@h',
    'redis://u:a?hunter2=1&b@h',
    'redis://u:a?hunter2',
    'redis+sentinel://h/s?sentinel_password=hunter2&x=1',
    'redis+sentinel://h/s?sentinel_password=hunter2@',
    'rodis://u:hunter2@h',
  ]) {
    try {
      parseStoreAddress(text);
      t.fail(text);
    } catch (error) {
      t.notMatch((error as Error).message, /hunter2/, text);
    }
  }
});

t.test('the text of an address can be parsed again', async (t) => {
  for (const name of ['h:1', '[::1]:6379', '10.0.0.1:7000']) {
    const address = parseStoreAddress(`redis://${name}`);
    if (address.kind === 'standalone') t.equal(endpointName(address.endpoint), name);
  }
});
