import { join } from 'node:path';
import t from 'tap';
import { endpointName, parseStoreAddress, type StoreAddress } from '#gateway/store/address.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const tlsFiles = { ca: '', cert: '', key: '' };
const open = { tls: false, username: null, password: null, tlsFiles, timeoutMs: 50 };
const at = (host: string, port: number) => ({ host, port });

const standalone = (
  host: string,
  port = 6379,
  more: Partial<Extract<StoreAddress, { kind: 'standalone' }>> = {},
): StoreAddress => ({ kind: 'standalone', endpoint: at(host, port), database: 0, ...open, ...more });
const socket = (path: string) => ({ endpoint: { path } });
const cluster = { kind: 'cluster', ...open } as const;
const sentinel = { kind: 'sentinel', sentinelPassword: null, database: 0, ...open } as const;
const u = { tls: true, username: 'u', password: 'p' };

const understood: Record<string, StoreAddress> = {
  'redis://localhost': standalone('localhost'),
  'REDIS://r_1.example:6380/': standalone('r_1.example', 6380),
  'redis://[::1]/12': standalone('::1', 6379, { database: 12 }),
  'rediss://u:p%40%2F%3F%25:s@h:1/3': standalone('h', 1, { ...u, password: 'p@/?%:s', database: 3 }),
  'redis://:secret@h': standalone('h', 6379, { password: 'secret' }),
  'unix:/run/redis.sock': standalone('', 0, socket('/run/redis.sock')),
  'unix:///var/run/a%20b.sock?db=2&username=u&password=p%26%40&timeout_ms=80': standalone('', 0, {
    ...socket('/var/run/a b.sock'),
    ...{ database: 2, username: 'u', password: 'p&@', timeoutMs: 80 },
  }),
  'redis+cluster://h1:7000,h2,[::1]:7002': {
    ...cluster,
    seeds: [at('h1', 7000), at('h2', 6379), at('::1', 7002)],
  },
  'rediss+cluster://u:p@h1/0': { ...cluster, ...u, seeds: [at('h1', 6379)] },
  'redis+sentinel://h1,h2:26380/my%20primary': {
    ...sentinel,
    sentinels: [at('h1', 26_379), at('h2', 26_380)],
    service: 'my primary',
  },
  'rediss+sentinel://u:p@[2001:db8::1]:26379/s/2': {
    ...sentinel,
    ...u,
    sentinels: [at('2001:db8::1', 26_379)],
    service: 's',
    database: 2,
  },
  'redis://h?timeout_ms=250': standalone('h', 6379, { timeoutMs: 250 }),
  'rediss+cluster://h1/?ca=/etc/tls/ca%20one.pem&cert=c+1.pem&key=k.pem': {
    ...cluster,
    seeds: [at('h1', 6379)],
    tls: true,
    tlsFiles: { ca: '/etc/tls/ca one.pem', cert: 'c+1.pem', key: 'k.pem' },
  },
  'redis+sentinel://h1/s/1?sentinel_password=p%26%23%40+1&ca=&timeout_ms=': {
    ...sentinel,
    sentinels: [at('h1', 26_379)],
    sentinelPassword: 'p&#@+1',
    service: 's',
    database: 1,
  },
};

t.test('reads valid addresses', async (t) => {
  for (const [text, address] of Object.entries(understood))
    t.strictSame(parseStoreAddress(text), address, text);
});

t.test('invalid addresses get one sentence', async (t) => {
  const file = join(import.meta.dirname, 'addresses.md');
  for (const [text = '', message = ''] of casesUnder(file, 'Refused'))
    t.throws(() => parseStoreAddress(text), { message }, text);
});

t.test('no message contains the password', async (t) => {
  for (const text of [
    'redis://u:hunter2@h:0',
    'redis://u:hunter2@',
    'redis://u:hunter2@h?x',
    'redis://u:a?hunter2@h',
    'redis://u:a?hunter2=1&b@h',
    'redis://u:a?hunter2',
    'redis+sentinel://h/s?sentinel_password=hunter2&x=1',
    'redis+sentinel://h/s?sentinel_password=hunter2@',
    'rodis://u:hunter2@h',
  ]) {
    try {
      parseStoreAddress(text);
      t.fail(text);
    } catch (error) {
      t.notMatch((error as Error).message, /hunter2/, text);
    }
  }
});

t.test('the text of an address can be parsed again', async (t) => {
  for (const name of ['h:1', '[::1]:6379', '10.0.0.1:7000']) {
    const address = parseStoreAddress(`redis://${name}`);
    if (address.kind === 'standalone') t.equal(endpointName(address.endpoint), name);
  }
});
