import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';

const FILE = `version: 1
identifiers:
  ip: { source: client-address }
  provider: { source: [{ network: networks.txt }] }
  plan-of: { source: [{ header: x-key }] }
policies:
  - { name: each, route: "GET /a", identifier: provider, limit: 2, window: 1m }
  - { name: shop, route: "GET /b/{shop}", identifier: [provider, path.shop], limit: 1, window: 1m }
  - { name: strangers, route: "GET /c", identifier: provider, unless: plan-of, limit: 1, window: 1m }
`;
const NETWORKS = `# network, name

203.0.113.0/24 AS64500
  203.0.113.128/25\tAS64501   # rented out\r
198.51.100.0/24 AS64500#comment
198.51.100.0/24 AS64500
2001:db8::/32 64500`;

const load = (text: string, file = FILE) => loadPolicies(file, 'p.yaml', () => text);

function networksOf(set: ReturnType<typeof load>) {
  const [found] = set.identifiers.flatMap((one) => (one.kind === 'network' ? [one.networks] : []));
  if (found === undefined) throw new Error('the file has an identifier of this kind');
  return found;
}

t.test('each mistake of a file with its line, and at most ten', async (t) => {
  const place = 'p.yaml:4:35: networks.txt';
  const bad = [
    [
      '203.0.113.0/24',
      `${place}:1: "203.0.113.0/24" is not a network and its name; write NETWORK NAME, such as`,
    ],
    ['a\n203.0.113.0/24 # AS1', `${place}:2: "203.0.113.0/24" is not a network`],
    ['203.0.113.0/24 two names', 'is not a network and its name'],
    ['203.0.113.0/24,AS64500', 'is not a network and its name'],
    [`203.0.113.0/24 ${'a'.repeat(65)}`, 'is not a network and its name'],
    ['\n\nexample AS64500', `${place}:3: "example" is neither an address nor a network`],
    ['203.0.113.0/33 AS64500', 'neither an address nor a network'],
    ['::ffff:0.0.0.0/90 AS64500', 'covers every IPv4 address'],
    ['10.0.0.0/8 a\n10.1.2.3/8 b', `${place}:2: 10.1.2.3/8 has two names, a and b; keep one of them`],
  ] as const;
  for (const [text, words] of bad) t.ok(messageOf(() => load(text)).includes(words), text);
  const many = messageOf(() => load('nothing\n'.repeat(1000)));
  t.equal(many.match(/is not a network and its name/g)?.length, 10);
});

t.test('a file that is too large', async (t) => {
  t.match(
    messageOf(() => load('#'.repeat(67_108_865))),
    'the files that this one names have more than 64 MiB together',
  );
});

t.test('an unchanged file is not read again', async (t) => {
  const first = networksOf(load(NETWORKS));
  t.equal(networksOf(load(NETWORKS, FILE.replace('limit: 2', 'limit: 3'))), first);
  const other = networksOf(load('203.0.113.0/24 other'));
  t.equal(other.find([203, 0, 113, 1]), 'other');
  t.equal(first.find([203, 0, 113, 1]), 'AS64500', 'a policy file in use keeps its own');
  t.throws(() => load('nothing'), { message: /is not a network/ });
  t.equal(networksOf(load('203.0.113.0/24 other')), other);
});

t.test('mistakes and warnings of allow and deny by name', async (t) => {
  const policies = FILE.slice(FILE.indexOf('identifiers:'));
  const lists = (rows: string) => load(NETWORKS, `version: 1\n${rows}\n${policies}`);
  const rows = `allow: [{ network: networks.txt, name: 64500 }]
deny:
  - { network: networks.txt, name: [AS64500, AS1], status: 403 }
  - { address: 203.0.113.7 }
  - { userAgent: GPTBot }`;
  const twice =
    'allow: [{ network: networks.txt, name: AS1 }]\ndeny: [{ network: networks.txt, name: [AS2, AS1] }]';
  t.match(
    messageOf(() => lists(twice)),
    'networks.txt, AS2, AS1 appears twice in allow and deny; keep one of them',
  );
  t.match(
    messageOf(() => lists('deny: [{ network: networks.txt, name: [AS2, AS2] }]')),
    'appears twice',
  );
  t.strictSame(
    warningsOf(lists(rows), () => ({ line: 1, column: 1 }))
      .map(({ message }) => message)
      .filter((text) => text.startsWith('networks')),
    ['networks.txt has no network of AS1'],
  );
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}
