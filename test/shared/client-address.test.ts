import t from 'tap';
import { clientAddress, isTrustedPeer, parseNetwork, UNTRUSTED } from '#shared/client-address.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { fc } from '#test/support/fast-check.ts';
import { dice } from '#test/support/seed.ts';

/** Tests with `trust` as in GATEWAY_TRUSTED_PROXIES. */
const client = (trust: string, peer: string | undefined, chain = '', ipv6Prefix?: number): string =>
  clientAddress(peer, chain, parseTrustedProxies(trust), ipv6Prefix);

t.test('without trusted proxies the socket decides, whatever the header', async (t) => {
  for (const trust of ['', 'none', ' none ', '0', '10.0.0.0/8', 'loopback']) {
    t.equal(client(trust, '203.0.113.9', '1.1.1.1'), '203.0.113.9', `trust "${trust}"`);
  }
  t.equal(client('none', '203.0.113.9', 'garbage'), '203.0.113.9');
  t.equal(client('none', undefined), UNTRUSTED, 'a closed socket has no address');
  t.equal(client('none', ''), UNTRUSTED);
});

t.test(
  'behind trusted proxies: reads the chain from the right up to the first untrusted address',
  async (t) => {
    const cases: readonly (readonly [trust: string, peer: string, chain: string, counted: string])[] = [
      ['10.0.0.0/8', '10.0.0.1', '1.1.1.1', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', '6.6.6.6, 1.1.1.1, 10.0.0.2, 10.9.9.9', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', 'garbage, 1.1.1.1', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', '10.0.0.7, 1.1.1.1', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', '  1.1.1.1\t', '1.1.1.1'],
      ['10.0.0.0/8', '10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
      ['10.0.0.0/8', '10.0.0.1', '', '10.0.0.1'],
      ['10.0.0.0/8', '10.0.0.1', '   ', '10.0.0.1'],
      ['10.0.0.0/8', '11.0.0.1', '1.1.1.1', '11.0.0.1'],
      ['10.0.0.1', '10.0.0.1', '1.1.1.1', '1.1.1.1'],
      ['10.0.0.1', '10.0.0.2', '1.1.1.1', '10.0.0.2'],
      ['0.0.0.0/0', '203.0.113.9', '1.1.1.1', '1.1.1.1'],
      ['0.0.0.0/0', '2001:db8::1', '1.1.1.1', '2001:db8::/64'],
      ['loopback', '127.8.8.8', '1.1.1.1', '1.1.1.1'],
      ['cloudflare, loopback', '127.0.0.1', '1.1.1.1, 172.71.0.9', '1.1.1.1'],
      ['cloudflare', '2606:4700::1', '172.72.0.9, 2c0f:f248::9', '172.72.0.9'],
      ['loopback', '::1', '1.1.1.1', '1.1.1.1'],
      ['loopback', '::ffff:127.0.0.1', '1.1.1.1', '1.1.1.1'],
      ['loopback, 10.0.0.0/8,fd00::/8', '127.0.0.1', '1.1.1.1, fd00::7, 10.0.0.1', '1.1.1.1'],
      ['fd00::/8', 'fd12::1', '2001:db8:1:2:3::4', '2001:db8:1:2::/64'],
      ['::ffff:10.0.0.0/104', '10.7.7.7', '1.1.1.1', '1.1.1.1'],
      ['::ffff:10.0.0.0/104', '11.7.7.7', '1.1.1.1', '11.7.7.7'],
      ['::ffff:10.0.0.1', '10.0.0.1', '1.1.1.1', '1.1.1.1'],
      ['10.0.0.0/8', '::ffff:10.0.0.1', '1.1.1.1', '1.1.1.1'],
    ];
    for (const [trust, peer, chain, counted] of cases)
      t.equal(client(trust, peer, chain), counted, `${trust} | ${peer} | ${chain}`);
  },
);

t.test('a hop count: takes the entry at that position from the right', async (t) => {
  const cases: readonly (readonly [hops: string, chain: string, counted: string])[] = [
    ['1', '1.1.1.1', '1.1.1.1'],
    ['1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['2', '6.6.6.6, 1.1.1.1, 2.2.2.2', '1.1.1.1'],
    ['2', 'garbage, 1.1.1.1, also garbage', '1.1.1.1'],
    ['3', '1.1.1.1, 2.2.2.2', UNTRUSTED],
    ['1', '', UNTRUSTED],
    ['1', '1.1.1.1,', UNTRUSTED],
    ['1', '1.1.1.1, unknown', UNTRUSTED],
    ['2', ',1.1.1.1', UNTRUSTED],
    ['32', `1.1.1.1${', 2.2.2.2'.repeat(31)}`, '1.1.1.1'],
  ];
  for (const [hops, chain, counted] of cases)
    t.equal(client(hops, '9.9.9.9', chain), counted, `${hops} | ${chain}`);
});

t.test('an entry is an address, with or without port, brackets and zone', async (t) => {
  const cases: readonly (readonly [entry: string, counted: string])[] = [
    ['1.1.1.1:8080', '1.1.1.1'],
    ['::ffff:1.1.1.1', '1.1.1.1'],
    ['::FFFF:0101:0101', '1.1.1.1'],
    ['[::ffff:1.1.1.1]:80', '1.1.1.1'],
    ['2001:DB8:0:1::9', '2001:db8:0:1::/64'],
    ['2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
    ['[2001:db8::1]', '2001:db8::/64'],
    ['[2001:db8::1]:443', '2001:db8::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['[fe80::1%eth0]:443', 'fe80::/64'],
    ['::2', '::/64'],
  ];
  for (const [entry, counted] of cases) t.equal(client('1', '9.9.9.9', entry), counted, entry);
});

t.test('all unreadable chains share one identity', async (t) => {
  const entries = [
    ...[
      'unknown',
      '_hidden',
      'localhost',
      '1.1.1',
      '1.1.1.1.1',
      '1.1.1.256',
      '01.1.1.1',
      '0x7f.1',
      '2130706433',
    ],
    ...['1.1.1.1:', '1.1.1.1:http', '1.1.1.1:123456', '[1.1.1.1', '[::1]x', '[::1]:', '::1]', '[]', '%eth0'],
    ...[
      'for=1.1.1.1',
      '1.1.1.1;2.2.2.2',
      '1.1.1.1 2.2.2.2',
      ':::',
      '2001:db8::1::2',
      '"1.1.1.1"',
      '\u0001',
      '-',
    ],
    ...['10.0.0.5,,10.0.0.6', ',', '1.1.1.1,', '10.0.0.5, ,10.0.0.6'],
  ];
  for (const entry of entries)
    t.equal(client('10.0.0.0/8', '10.0.0.1', entry), UNTRUSTED, encodeURIComponent(entry));
});

t.test('only the trusted end of a chain counts: entries on the left change nothing', async (t) => {
  const padding = '6.6.6.6, '.repeat(1000);
  t.equal(client('10.0.0.0/8', '10.0.0.1', `${padding}1.1.1.1`), '1.1.1.1');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `${','.repeat(10_000)}1.1.1.1`), '1.1.1.1');
  t.equal(client('2', '10.0.0.1', `${padding}1.1.1.1, 2.2.2.2`), '1.1.1.1');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `1.1.1.1${', 10.0.0.2'.repeat(63)}`), '1.1.1.1', '64 entries');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `1.1.1.1${', 10.0.0.2'.repeat(64)}`), UNTRUSTED, '65 entries');
});

t.test('an IPv6 client is its network, an IPv4 client its address', async (t) => {
  const cases: readonly (readonly [peer: string, prefix: number, counted: string])[] = [
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 64, '2001:db8:aaaa:bbbb::/64'],
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 60, '2001:db8:aaaa:bbb0::/60'],
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 56, '2001:db8:aaaa:bb00::/56'],
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 49, '2001:db8:aaaa:8000::/49'],
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 16, '2001::/16'],
    ['2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff', 128, '2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff/128'],
    ['203.0.113.9', 16, '203.0.113.9'],
    ['::ffff:203.0.113.9', 64, '203.0.113.9'],
  ];
  for (const [peer, prefix, counted] of cases)
    t.equal(client('none', peer, '', prefix), counted, `${peer}/${prefix}`);
});

t.test('whose X-Forwarded-* headers are trusted', async (t) => {
  const cases: readonly (readonly [trust: string, peer: string | undefined, trusted: boolean])[] = [
    ['none', '127.0.0.1', false],
    ['1', '203.0.113.9', true],
    ['loopback', '127.0.0.1', true],
    ['loopback', '::ffff:127.0.0.1', true],
    ['loopback', '10.0.0.1', false],
    ['10.0.0.0/8', undefined, false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '203.0.113.9', false],
  ];
  for (const [trust, peer, trusted] of cases)
    t.equal(isTrustedPeer(peer, parseTrustedProxies(trust)), trusted, `${trust} | ${peer}`);
});

t.test('an error names the wrong entry and how to correct it', async (t) => {
  const shape =
    'is neither an address, a CIDR such as 10.0.0.0/8, the words loopback or cloudflare, a file such as ./proxies.txt, nor a hop count such as 1';
  const entries = [
    ...[
      'proxy',
      'Loopback',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10.0.0.0/x',
      '10.0.0/8',
    ],
    ...['::1/129', '300.0.0.1', '1.5', '-1', '10.0.0.1:80', '10.0.0.0/8 10.1.0.0/16', '*'],
  ];
  for (const entry of entries) {
    t.throws(() => parseTrustedProxies(entry), { message: `"${entry}" ${shape}` }, entry);
    t.throws(() => parseTrustedProxies(`loopback, ${entry}`), { message: `"${entry}" ${shape}` }, entry);
  }
  t.throws(() => parseTrustedProxies('33'), {
    message: '33 hops are more than 32; give the number of proxies',
  });
  t.throws(() => parseTrustedProxies('99999999999999999999'), { message: /more than 32/ });
  t.throws(
    () => parseTrustedProxies('::ffff:10.0.0.0/8'),
    { message: '"::ffff:10.0.0.0/8" covers every IPv4 address; write it as 10.0.0.0/LENGTH' },
    '::ffff:10.0.0.0/8 would trust every IPv4 address',
  );
});

t.test('the result depends only on entries of trusted proxies', async () => {
  const trust = parseTrustedProxies('10.0.0.0/8');
  const octet = fc.integer({ min: 0, max: 255 });
  const proxy = fc.tuple(octet, octet, octet).map((octets) => `10.${octets.join('.')}`);
  const stranger = fc
    .tuple(fc.integer({ min: 11, max: 250 }), octet, octet, octet)
    .map((parts) => parts.join('.'));
  const spoofed = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc
      .array(fc.oneof(proxy, stranger, fc.constant('')), { maxLength: 80 })
      .map((entries) => entries.join(',')),
  );
  fc.assert(
    fc.property(proxy, spoofed, stranger, fc.array(proxy, { maxLength: 20 }), (peer, left, address, hops) => {
      const chain = [left, address, ...hops].join(', ');
      const counted = clientAddress(peer, chain, trust);
      if (counted !== address) throw new Error(`${chain} -> ${counted}`);
    }),
    { numRuns: 400 },
  );
});

t.test('never throws, and returns only an address, a network or untrusted', async () => {
  const shape = /^(?:untrusted|[\d.]{7,15}|[\da-f:]{2,39}\/64)$/;
  const text = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc
      .array(fc.constantFrom('1', '.', ':', '::', 'f', '%', '[', ']', ',', ' ', '10.0.0.1', 'ffff'), {
        maxLength: 20,
      })
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, text, fc.constantFrom('none', '1', '3', '0.0.0.0/0,::/0'), (peer, chain, trust) => {
      for (const socket of [peer, '10.0.0.1']) {
        const counted = client(trust, socket, chain);
        if (!shape.test(counted)) throw new Error(`${socket} | ${chain} -> ${counted}`);
      }
    }),
    { numRuns: 400 },
  );
});

t.test('counts clients behind NAT64, 6to4 and Teredo by their IPv4 address', async (t) => {
  const none = parseTrustedProxies('none');
  for (const [address, counted] of [
    ['64:ff9b::192.0.2.33', '192.0.2.33'],
    ['64:ff9b::c000:221', '192.0.2.33'],
    ['2002:c000:0221::1', '192.0.2.33'],
    ['2002:c000:0221:ffff:1:2:3:4', '192.0.2.33'],
    // A network's own translator, usually with a prefix of 96 bits (RFC 8215).
    ['64:ff9b:1::c000:221', '192.0.2.33'],
    ['64:ff9b:1:fffe::192.0.2.33', '192.0.2.33'],
    // With 48, 56 or 64 bits the rest is zero (RFC 6052 2.2), so each address is one client.
    ['64:ff9b:1:c000:2:2100::', '64:ff9b:1:c000:2:2100::/128'],
    ['64:ff9b:1:aabb:c0:2:2100:0', '64:ff9b:1:aabb:c0:2:2100:0/128'],
    // Teredo inverts it (RFC 4380 4).
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', '192.0.2.45'],
    // Similar prefixes.
    ['64:ff9b:2::c000:221', '64:ff9b:2::/64'],
    ['2001:1:4136:e378:8000:63bf:3fff:fdd2', '2001:1:4136:e378::/64'],
    ['64:ff9b:0:0:0:1:c000:221', '64:ff9b::/64'],
    ['2003:c000:221::1', '2003:c000:221::/64'],
  ] as const) {
    t.equal(clientAddress(address, '', none), counted, address);
  }
  t.equal(clientAddress('127.0.0.1', '64:ff9b::203.0.113.9', parseTrustedProxies('loopback')), '203.0.113.9');
});

t.test('does not trust an IPv4 address inside a 6to4 or NAT64 address as a proxy', async (t) => {
  const trust = parseTrustedProxies('10.0.0.0/8');
  for (const peer of ['2002:0a00:0001::1', '64:ff9b::10.0.0.1', '64:ff9b:1::10.0.0.1', '2001::f5ff:fffe']) {
    t.equal(isTrustedPeer(peer, trust), false, peer);
    t.equal(clientAddress(peer, '203.0.113.9', trust), '10.0.0.1', 'its own header is ignored');
  }
});

t.test('a network has the same bytes in each spelling', async (t) => {
  const roll = dice(1);
  for (let i = 0; i < 300; i++) {
    const groups = Array.from({ length: 1 + roll(7) }, () =>
      roll([2, 256, 65_536][roll(3)] ?? 2).toString(16),
    );
    groups[0] = (1 + roll(65_535)).toString(16);
    const bits = roll(129);
    const short = `${groups.join(':')}::/${bits}`;
    const long = `${[...groups, ...new Array(8 - groups.length).fill('0')].join(':')}/${bits}`;
    t.strictSame(parseNetwork(i % 2 === 0 ? short : short.toUpperCase()), parseNetwork(long), short);
  }
  for (const text of [
    '2001:db8::/129',
    '2001:db8::/',
    '12345::/32',
    '1:2:3:4:5:6:7:8::/64',
    '2001::db8::/32',
  ])
    t.throws(() => parseNetwork(text), { message: /neither an address nor a network/ }, text);
  t.throws(() => parseNetwork('0:0:0:0:0:ffff::/90'), { message: /covers every IPv4 address/ });
});

t.test('IPv4 networks count as one client if that is asked for', async (t) => {
  const network = (peer: string, ipv4Prefix: number): string =>
    clientAddress(peer, '', { kind: 'none' }, 64, ipv4Prefix);
  t.equal(network('192.0.2.200', 32), '192.0.2.200');
  t.equal(network('192.0.2.200', 24), '192.0.2.0/24');
  t.equal(network('192.0.2.200', 25), '192.0.2.128/25');
  t.equal(network('10.200.3.4', 8), '10.0.0.0/8');
  t.equal(network('::ffff:192.0.2.200', 24), '192.0.2.0/24', 'in mapped notation');
  t.equal(network('64:ff9b::c000:2c8', 24), '192.0.2.0/24', 'behind NAT64');
  t.equal(network('2002:c000:2c8::1', 24), '192.0.2.0/24', '6to4');
  t.equal(network('2001:db8::1', 24), '2001:db8::/64', 'IPv6 has its own prefix');
  t.equal(network('garbage', 24), UNTRUSTED);
});
