/** Tests headers of both versions, whole and in pieces, and bytes that only look like a header. */

import t from 'tap';
import { readProxyHeader } from '#gateway/listen/proxy-protocol/header.ts';
import { fc } from '#test/support/fast-check.ts';

export const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n';

/** @param command 0x20 LOCAL, 0x21 PROXY */
function v2(command: number, family: number, body: Buffer): Buffer {
  const fixed = Buffer.alloc(4);
  fixed.writeUInt8(command, 0);
  fixed.writeUInt8(family, 1);
  fixed.writeUInt16BE(body.length, 2);
  return Buffer.concat([Buffer.from(SIGNATURE, 'latin1'), fixed, body]);
}

const ADDRESSES_4 = Buffer.from([192, 0, 2, 7, 10, 0, 0, 1, 0xc0, 0x01, 0x01, 0xbb]);
const ADDRESSES_6 = Buffer.concat([
  Buffer.from('20010db8000000000000000000000007', 'hex'),
  Buffer.alloc(16, 1),
  Buffer.from([0xc0, 1, 1, 0xbb]),
]);
const TLV = Buffer.from([0x04, 0, 3, 1, 2, 3]);

const GOOD: Record<string, readonly [Buffer, string | null]> = {
  'v1 TCP4': [Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 49153 443\r\n'), '192.0.2.7'],
  'v1 TCP6': [Buffer.from('PROXY TCP6 2001:db8::7 ::1 0 65535\r\n'), '2001:db8::7'],
  'v1 UNKNOWN': [Buffer.from('PROXY UNKNOWN\r\n'), null],
  'v1 UNKNOWN with addresses': [Buffer.from('PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n'), null],
  'v2 TCP4': [v2(0x21, 0x11, ADDRESSES_4), '192.0.2.7'],
  'v2 TCP6': [v2(0x21, 0x21, ADDRESSES_6), '2001:db8:0:0:0:0:0:7'],
  'v2 with more behind the addresses': [
    v2(0x21, 0x11, Buffer.concat([ADDRESSES_4, TLV, Buffer.alloc(3000)])),
    '192.0.2.7',
  ],
  'v2 LOCAL': [v2(0x20, 0x00, Buffer.alloc(0)), null],
  'v2 LOCAL with addresses': [v2(0x20, 0x11, ADDRESSES_4), null],
  'v2 UNSPEC': [v2(0x21, 0x00, TLV), null],
  'v2 UNIX': [v2(0x21, 0x31, Buffer.alloc(216)), null],
};

for (const [name, [header, address]] of Object.entries(GOOD)) {
  t.test(name, async (t) => {
    const expected = { bytes: header.length, address };
    t.strictSame(readProxyHeader(header), expected);
    t.strictSame(readProxyHeader(Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')])), expected);
    for (let length = 0; length < header.length; length++)
      t.equal(readProxyHeader(header.subarray(0, length)), 'more', `${length} bytes are too few`);
  });
}

const BAD: Record<string, Buffer> = {
  'no header': Buffer.from('GET / HTTP/1.1\r\n'),
  'a ClientHello': Buffer.from([22, 3, 1]),
  'v1 in small letters': Buffer.from('proxy TCP4 '),
  'v1 of another family': Buffer.from('PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n'),
  'v1 of the wrong family': Buffer.from('PROXY TCP4 2001:db8::7 ::1 1 2\r\n'),
  'v1 with a name': Buffer.from('PROXY TCP4 localhost 10.0.0.1 1 2\r\n'),
  'v1 with a zone': Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n'),
  'v1 without ports': Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1\r\n'),
  'v1 with a port too large': Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n'),
  'v1 with more': Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n'),
  'v1 with two spaces': Buffer.from('PROXY  TCP4 192.0.2.7 10.0.0.1 1 2\r\n'),
  'v1 without an end': Buffer.from(`PROXY UNKNOWN ${'x'.repeat(100)}`),
  'v2 of another version': v2(0x11, 0x11, ADDRESSES_4),
  'v2 of another command': v2(0x22, 0x11, ADDRESSES_4),
  'v2 of datagrams': v2(0x21, 0x12, ADDRESSES_4),
  'v2 too short for its addresses': v2(0x21, 0x21, ADDRESSES_4),
  'v2 larger than it may be': v2(0x21, 0x11, Buffer.alloc(5000)).subarray(0, 16),
};

for (const [name, bytes] of Object.entries(BAD))
  t.test(`refused: ${name}`, async (t) => t.equal(readProxyHeader(bytes), 'bad'));

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
