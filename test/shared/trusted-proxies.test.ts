/** Files of trusted proxies: which are read, and what is a mistake. */
import t from 'tap';
import { isTrustedPeer, writtenNetwork } from '#shared/client-address.ts';
import { networksIn, parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { fc } from '#test/support/fast-check.ts';

/** Reads files from a table instead of the disk. */
const readingFrom = (files: Readonly<Record<string, string>>) => (name: string) => {
  const text = files[name];
  if (text === undefined) throw Object.assign(new Error(name), { code: 'ENOENT' });
  return text;
};

t.test('a list combines networks, words and files', async (t) => {
  const read = readingFrom({
    './a.txt': '# ours\n10.0.0.0/8 # all of it\r\n\n\t2001:db8::/32\n',
    '/etc/b.txt': '\ufeff198.51.100.7',
    '../c.txt': '::ffff:203.0.113.0/120\n',
  });
  const trust = parseTrustedProxies('cloudflare, ./a.txt,/etc/b.txt ,../c.txt,./a.txt, 192.0.2.1', read);
  const trusted = ['10.1.2.3', '2001:db8::9', '198.51.100.7', '203.0.113.9', '192.0.2.1', '104.16.0.1'];
  for (const peer of trusted) t.ok(isTrustedPeer(peer, trust), peer);
  const others = [
    '11.1.2.3',
    '2001:db9::9',
    '198.51.100.8',
    '203.0.114.9',
    '192.0.2.2',
    '104.32.0.1',
    '127.0.0.1',
  ];
  for (const peer of others) t.notOk(isTrustedPeer(peer, trust), peer);
  t.strictSame(
    trust.kind === 'cidrs' && trust.networks.files.map(({ name }) => name),
    ['./a.txt', '/etc/b.txt', '../c.txt'],
    'a file that is named twice is read once',
  );
});

t.test('a mistake names the file, the line and what is wrong', async (t) => {
  const bad = 'is neither an address nor a CIDR such as 10.0.0.0/8';
  const cases: readonly (readonly [text: string, message: string])[] = [
    ['10.0.0.0/8\n10.0.0/8\n# x\n1\n', `./p.txt:2: "10.0.0/8" ${bad}; ./p.txt:4: "1" ${bad}`],
    ['loopback\n', `./p.txt:1: "loopback" ${bad}`],
    ['10.0.0.1 10.0.0.2\n', `./p.txt:1: "10.0.0.1 10.0.0.2" ${bad}`],
    ['10.0.0.1, 10.0.0.2\n', `./p.txt:1: "10.0.0.1, 10.0.0.2" ${bad}`],
    [
      '::ffff:10.0.0.0/8\n',
      './p.txt:1: "::ffff:10.0.0.0/8" covers every IPv4 address; write it as 10.0.0.0/LENGTH',
    ],
    ['', './p.txt names no network; name one, or remove the file from the setting'],
    ['# 10.0.0.1\n', './p.txt names no network; name one, or remove the file from the setting'],
    ['10.0.0.1\n'.repeat(10_001), './p.txt has more than 10000 lines; name fewer networks'],
    [`#${' '.repeat(1_048_576)}\n`, './p.txt has more than 1 MiB; name fewer networks'],
    ['x\n'.repeat(99), Array.from({ length: 10 }, (_, i) => `./p.txt:${i + 1}: "x" ${bad}`).join('; ')],
  ];
  for (const [text, message] of cases)
    t.throws(() => parseTrustedProxies('./p.txt', readingFrom({ './p.txt': text })), { message }, message);
  t.equal(networksIn('10.0.0.1\n'.repeat(10_000), 'p').length, 10_000);
  t.throws(() => parseTrustedProxies('./none.txt', readingFrom({})), {
    message: './none.txt cannot be read (ENOENT)',
  });
  t.throws(() => parseTrustedProxies('/dev'), { message: '/dev cannot be read (EISDIR)' });
  t.throws(() => parseTrustedProxies('/dev/null'), {
    message: '/dev/null cannot be read (not a regular file)',
  });
  const nine = Array.from({ length: 9 }, (_, i) => `./${i}`).join();
  t.throws(() => parseTrustedProxies(nine), { message: '9 files are more than 8; join some' });
  t.throws(() => parseTrustedProxies('1,cloudflare'), /"1" is neither/, 'a hop count stands alone');
});

t.test('a look-up finds exactly the addresses of the networks', async () => {
  const byte = fc.integer({ min: 0, max: 255 });
  const address = fc.oneof(
    fc.array(byte, { minLength: 4, maxLength: 4 }),
    fc.array(byte, { minLength: 16, maxLength: 16 }),
  );
  const bitsOf = (bytes: readonly number[]): string =>
    bytes.map((one) => one.toString(2).padStart(8, '0')).join('');
  fc.assert(
    fc.property(address, fc.nat(128), address, fc.nat(128), (bytes, length, other, kept) => {
      const bits = Math.min(length, bytes.length * 8);
      // An address near the network: it begins like it.
      const near = bytes.map((one, i) => ((i + 1) * 8 <= kept ? one : (other[i % other.length] ?? 0)));
      const trust = parseTrustedProxies(writtenNetwork({ bytes, bits }));
      if (trust.kind !== 'cidrs') return false;
      const [network] = trust.networks.all;
      if (network === undefined) return false;
      const isInside = (one: readonly number[]): boolean =>
        one.length === network.bytes.length &&
        bitsOf(one).slice(0, network.bits) === bitsOf(network.bytes).slice(0, network.bits);
      return [near, other, bytes].every((one) => trust.networks.has(one) === isInside(one));
    }),
  );
});
