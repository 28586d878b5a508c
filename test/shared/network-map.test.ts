/** The map of networks: the longest prefix, and random networks against a search through all of them. */
import t from 'tap';
import { ClientAddress, type Network, parseNetwork } from '#shared/client-address.ts';
import { NetworkMap } from '#shared/network-map.ts';
import { dice } from '#test/support/seed.ts';

const bytes = (address: string) => new ClientAddress(address, '', { kind: 'none' }).bytes;

t.test('the longest matching prefix of an address wins', async (t) => {
  const map = new NetworkMap<string>();
  const networks = ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '2001:db8::/32', '2001:db8:1::/48', '0.0.0.0/0'];
  for (const text of networks) t.ok(map.add(parseNetwork(text), text));
  t.notOk(map.add(parseNetwork('10.9.9.9/8'), 'again'), 'the same network is refused');
  t.equal(map.get(parseNetwork('10.77.0.0/8')), '10.0.0.0/8');
  t.equal(map.get(parseNetwork('10.0.0.0/9')), undefined);
  t.equal(map.size, 6);
  const cases = [
    ['10.1.2.3', '10.1.2.3'],
    ['10.1.2.4', '10.1.0.0/16'],
    ['10.2.0.0', '10.0.0.0/8'],
    ['11.0.0.0', '0.0.0.0/0'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['64:ff9b::a01:203', '10.1.2.3'],
    ['2001:db8:1::1', '2001:db8:1::/48'],
    ['2001:db8:2::1', '2001:db8::/32'],
    ['2001:db9::1', undefined],
  ] as const;
  for (const [address, network] of cases) t.equal(map.find(bytes(address) ?? []), network, address);
});

t.test(
  'random networks, of which some go again: the same as the longest prefix of a search through all',
  async (t) => {
    for (let seed = 1; seed <= 40; seed++) {
      const below = dice(seed);
      // Few different bytes, so that networks contain each other and begin or end at the same address.
      const address = (length: number) =>
        Array.from({ length }, () => [0, 1, 127, 128, 254, 255][below(6)] ?? 0);
      const added: { network: Network; value: number }[] = [];
      const map = new NetworkMap<number>();
      const known = new Set<string>();
      for (let i = 0; i < 150; i++) {
        const length = below(2) === 0 ? 4 : 16;
        const network = { bytes: address(length), bits: below(length * 8 + 1) };
        const value = below(4);
        const key = `${network.bits} ${firstBits(network.bytes, network.bits)}`;
        const isNew = !known.has(`${length} ${key}`);
        known.add(`${length} ${key}`);
        if (map.add(network, value) !== isNew) return t.fail(`seed ${seed}: network ${i} is new: ${isNew}`);
        if (isNew) added.push({ network, value });
      }
      for (const { network } of added.splice(100)) map.delete(network);
      map.delete({ bytes: [9, 9, 9, 9], bits: 32 });
      t.equal(map.size, added.length);
      const asked = [
        ...added.map(({ network }) => network.bytes),
        ...Array.from({ length: 300 }, (_, i) => address(i % 2 === 0 ? 4 : 16)),
      ];
      const wrong = asked.filter((bytes) => map.find(bytes) !== longest(added, bytes));
      t.strictSame(wrong, [], `seed ${seed}`);
    }
  },
);

function longest(added: readonly { network: Network; value: number }[], bytes: readonly number[]) {
  let best: { network: Network; value: number } | undefined;
  for (const one of added) {
    const { network } = one;
    if (network.bytes.length !== bytes.length || network.bits <= (best?.network.bits ?? -1)) continue;
    if (firstBits(network.bytes, network.bits) === firstBits(bytes, network.bits)) best = one;
  }
  return best?.value;
}

function firstBits(bytes: readonly number[], bits: number): string {
  return bytes
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .slice(0, bits);
}
