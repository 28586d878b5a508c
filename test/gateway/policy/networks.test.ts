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
