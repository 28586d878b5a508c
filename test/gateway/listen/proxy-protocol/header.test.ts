/** The headers of header.md, whole and in pieces, and bytes that only look like a header. */
import { join } from 'node:path';
import t from 'tap';
import { readProxyHeader } from '#gateway/listen/proxy-protocol/header.ts';
import { unescaped } from '#test/gateway/exchanges/document.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';

const FILE = join(import.meta.dirname, 'header.md');
const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n';

const bytesOf = (text: string): Buffer => Buffer.from(unescaped(text), 'latin1');

for (const [name = '', text = '', address] of casesUnder(FILE, 'Headers'))
  t.test(name, async (t) => {
    const header = bytesOf(text);
    const expected = { bytes: header.length, address: address === '(none)' ? null : address };
    t.strictSame(readProxyHeader(header), expected);
    t.strictSame(readProxyHeader(Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')])), expected);
    for (let length = 0; length < header.length; length++)
      t.equal(readProxyHeader(header.subarray(0, length)), 'more', `${length} bytes are too few`);
  });

for (const [name = '', text = ''] of casesUnder(FILE, 'What is refused'))
  t.test(`refused: ${name}`, async (t) => t.equal(readProxyHeader(bytesOf(text)), 'bad'));

t.test('never throws, and never waits for more than 4 KiB', async (t) => {
  const starts = fc.constantFrom('', 'PROXY ', 'PROXY TCP4 ', SIGNATURE, `${SIGNATURE}\x21\x11`);
  fc.assert(
    fc.property(starts, fc.uint8Array({ maxLength: 5000 }), (start, rest) => {
      const bytes = Buffer.concat([Buffer.from(start, 'latin1'), rest]);
      const header = readProxyHeader(bytes);
      return header !== 'more' || bytes.length < 4096;
    }),
  );
  t.pass();
});
