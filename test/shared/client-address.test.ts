/** The cases of client-address.md, and properties of any chain. */
import { join } from 'node:path';
import t from 'tap';
import { clientAddress, isTrustedPeer, parseNetwork, UNTRUSTED } from '#shared/client-address.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { arrowCases, casesUnder } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';
import { dice } from '#test/support/seed.ts';

const FILE = join(import.meta.dirname, 'client-address.md');

/** Tests with `trust` as in GATEWAY_TRUSTED_PROXIES. */
const client = (trust: string, peer: string | undefined, chain = ''): string =>
  clientAddress(peer, chain, parseTrustedProxies(trust));

for (const { heading, cases } of arrowCases(FILE).filter(({ cases: [first] }) => first?.length === 4))
  t.test(heading, async (t) => {
    for (const [first = '', second = '', third = '', counted] of cases)
      t.equal(
        heading === 'Prefixes'
          ? clientAddress(first, '', { kind: 'none' }, Number(third), Number(second))
          : client(first, second, third),
        counted,
        [first, second, third].join(' | '),
      );
  });

t.test('peers whose X-Forwarded fields are trusted', async (t) => {
  for (const [trust = '', peer = '', expected] of casesUnder(
    FILE,
    'Peers whose X-Forwarded fields are trusted',
  ))
    t.equal(isTrustedPeer(peer, parseTrustedProxies(trust)), expected === 'trusted', `${trust} | ${peer}`);
  t.equal(isTrustedPeer(undefined, parseTrustedProxies('10.0.0.0/8')), false, 'a closed socket');
  t.equal(client('none', undefined), UNTRUSTED, 'it has no address');
});

t.test('an error names the wrong entry and how to correct it', async (t) => {
  for (const [entry = '', message = ''] of casesUnder(FILE, 'Mistakes in the setting'))
    t.throws(() => parseTrustedProxies(entry), { message }, entry);
});

t.test('only the trusted end of a chain counts: entries on the left change nothing', async (t) => {
  const padding = '6.6.6.6, '.repeat(1000);
  t.equal(client('10.0.0.0/8', '10.0.0.1', `${padding}1.1.1.1`), '1.1.1.1');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `${','.repeat(10_000)}1.1.1.1`), '1.1.1.1');
  t.equal(client('2', '10.0.0.1', `${padding}1.1.1.1, 2.2.2.2`), '1.1.1.1');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `1.1.1.1${', 10.0.0.2'.repeat(63)}`), '1.1.1.1', '64 entries');
  t.equal(client('10.0.0.0/8', '10.0.0.1', `1.1.1.1${', 10.0.0.2'.repeat(64)}`), UNTRUSTED, '65 entries');
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
