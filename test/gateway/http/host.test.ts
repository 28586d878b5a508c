/** Tests that each host has one spelling, and which hosts have none. */
import t from 'tap';
import { canonicalHost, localAuthority, requestHost } from '#gateway/http/host.ts';

t.test('a host in canonical form', async (t) => {
  const label = 'a'.repeat(63);
  const cases: readonly (readonly [string, string | null])[] = [
    ['shop.example.org', 'shop.example.org'],
    ['Shop.EXAMPLE.org.', 'shop.example.org'],
    ['localhost', 'localhost'],
    ['my_app', 'my_app'],
    ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1.', '192.0.2.1'],
    ['[::1]', '[::1]'],
    ['[0:0::0:0001]', '[::1]'],
    ['[2001:DB8::A]', '[2001:db8::a]'],
    ['[::ffff:192.0.2.1]', '[::ffff:c000:201]'],
    [`${label}.${label}.${label}.${'a'.repeat(61)}`, `${label}.${label}.${label}.${'a'.repeat(61)}`],
    [`${label}.${label}.${label}.${'a'.repeat(62)}`, null],
    [`a${label}.org`, null],
    ['', null],
    ['.', null],
    ['shop.example.org..', null],
    ['.example.org', null],
    ['shop..example.org', null],
    ['-shop.example.org', null],
    ['shop-.example.org', null],
    ['%73hop.example.org', null],
    ['shop!.example.org', null],
    ['*.example.org', null],
    ['shop.example.org:80', null],
    ['user@shop.example.org', null],
    // These decode to nothing, or to a name with a shorter spelling.
    ['xn--shop-.example.org', null],
    ['xn--a.example.org', null],
    ['xn--99zzzz.example.org', null],
    // Other spellings of 127.0.0.1.
    ['127.1', null],
    ['0177.0.0.1', null],
    ['0x7f.0.0.1', null],
    ['127.0.0.0x1', null],
    ['2130706433', null],
    ['0x7f000001', null],
    ['::1', null],
    ['[::1', null],
    ['[::1%25lo]', null],
    ['[::1]x', null],
    ['[127.0.0.1]', null],
    ['[]', null],
    // U+212A and U+017F are k and s in other writing.
    ['\u212a.example.org', null],
    ['\u017fhop.example.org', null],
  ];
  for (const [text, expected] of cases) t.equal(canonicalHost(text), expected, text);
});

t.test('the host of a request', async (t) => {
  const of = (
    host: string | undefined,
    forwardedHost: string | undefined,
    trusted: boolean,
    authority: string | null = null,
  ): string => {
    const read = requestHost({ host, forwardedHost }, authority, trusted);
    return read.ok ? read.host : read.reason;
  };
  t.equal(of('A.test:80', undefined, false), 'a.test');
  t.equal(of('a.test', 'b.test', false), 'a.test', 'an untrusted X-Forwarded-Host is ignored');
  t.equal(of('a.test', 'bad host', false), 'a.test');
  t.equal(of('a.test', 'B.test:443', true), 'b.test');
  t.equal(of('a.test', undefined, true), 'a.test');
  t.equal(of('a.test', 'b.test, B.test:8443', true), 'b.test');
  t.equal(of('a.test', undefined, false, 'A.TEST:80'), 'a.test');
  t.equal(of('a.test', 'b.test', true, 'b.test'), 'b.test');
  t.match(of('a.test', 'b.test, c.test', true), 'X-Forwarded-Host names different hosts');
  t.match(of('a.test', 'b.test,', true), 'the X-Forwarded-Host does not name one');
  t.match(of('a.test', '', true), 'the X-Forwarded-Host does not name one');
  t.match(of(undefined, undefined, false), 'the Host header does not name one');
  t.match(of('', undefined, false), 'the Host header does not name one');
  t.match(of('a.test:8o', undefined, false), 'the Host header does not name one');
  for (const authority of ['b.test', 'a.test@b.test', 'b.test:80', 'a.test@', ':80'])
    t.match(
      of('a.test', undefined, false, authority),
      'the request target and the Host header name different',
    );
});

t.test('the authority of the address that a client has connected to', async (t) => {
  for (const [localAddress, localPort, scheme, authority] of [
    ['192.0.2.1', 8080, 'http', '192.0.2.1:8080'],
    ['192.0.2.1', 80, 'http', '192.0.2.1'],
    ['192.0.2.1', 443, 'https', '192.0.2.1'],
    ['192.0.2.1', 80, 'https', '192.0.2.1:80'],
    ['::ffff:192.0.2.1', 8080, 'http', '192.0.2.1:8080'],
    ['2001:db8::1', 8080, 'http', '[2001:db8::1]:8080'],
    ['fe80::1%eth0', 80, 'http', '[fe80::1]'],
  ] as const)
    t.equal(localAuthority({ localAddress, localPort }, scheme), authority);
  t.equal(localAuthority({}, 'http'), 'localhost');
});
