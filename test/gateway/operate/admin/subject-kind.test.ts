/** Tests that a mistyped address, a network or a host is never taken for a key. */
import t from 'tap';
import { kindOf } from '#gateway/operate/admin/subject-kind.ts';

t.test('addresses, networks, digests and keys', async (t) => {
  for (const [text, kind] of [
    ['192.0.2.7', 'address'],
    ['2001:db8::7', 'address'],
    ['::ffff:192.0.2.7', 'address'],
    ['192.0.2.0/24', 'network'],
    ['2001:db8::/32', 'network'],
    ['kHC_0EGDBj8EUeVVAyQhxA', 'digest'],
    ['fbk_1', 'key'],
    ['sk-live-51H8abc', 'key'],
    ['12345678', 'key'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U', 'key'],
    ['a b', 'key'],
    ['YWJj/ZGVm+Z2hp==', 'key'],
    ['user:password', 'key'],
  ] as const)
    t.equal(kindOf(text), kind, text);
});

t.test('what looks like an address or a network and is none is refused', async (t) => {
  for (const text of [
    '192.0.2.300',
    '192.0.2',
    '192.0.2.7.1',
    '192.0.2.x',
    '192.0.2,7',
    '192.0.2.',
    '192.0.2.7:80',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.*',
    '192.0.2.1-192.0.2.9',
    '192.0.2.07',
    '2001:db8:::7',
    '2001:db8::/129',
    '2001:db8::12345',
    '[2001:db8::7]',
    '[2001:db8::7]:443',
    '10.0.0.0/255.0.0.0',
  ])
    t.throws(() => kindOf(text), { statusCode: 400, message: /is neither; write one such as.*--key/ }, text);
});

t.test('a host is refused', async (t) => {
  for (const text of [
    'example.org',
    'shop.example.org:443',
    'bücher.example.org'.replace('ü', 'u'),
    'xn--bcher-kva.example',
    '*.example.org',
    'localhost',
    'localhost:3000',
    'https://example.org/a',
    'example.org/24',
  ])
    t.throws(() => kindOf(text), { statusCode: 400, message: /a host is no client.*--key/ }, text);
});
