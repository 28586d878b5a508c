import t from 'tap';
import { endpointName, parseStoreAddress, type StoreAddress } from '#gateway/store/address.ts';

const plain = { tlsFiles: { ca: '', cert: '', key: '' }, timeoutMs: 50 };
const open = { tls: false, username: null, password: null, ...plain };
const at = (host: string, port: number) => ({ host, port });

const understood: Record<string, StoreAddress> = {
  'redis://localhost': { kind: 'standalone', endpoint: at('localhost', 6379), database: 0, ...open },
  'REDIS://r_1.example:6380/': {
    kind: 'standalone',
    endpoint: at('r_1.example', 6380),
    database: 0,
    ...open,
  },
  'redis://[::1]/12': { kind: 'standalone', endpoint: at('::1', 6379), database: 12, ...open },
  'rediss://u:p%40%2F%3F%25:s@h:1/3': {
    kind: 'standalone',
    endpoint: at('h', 1),
    database: 3,
    tls: true,
    username: 'u',
    password: 'p@/?%:s',
    ...plain,
  },
  'redis://:secret@h': {
    kind: 'standalone',
    endpoint: at('h', 6379),
    database: 0,
    tls: false,
    username: null,
    password: 'secret',
    ...plain,
  },
  'unix:/run/redis.sock': { kind: 'standalone', endpoint: { path: '/run/redis.sock' }, database: 0, ...open },
  'unix:///var/run/a%20b.sock?db=2&username=u&password=p%26%40&timeout_ms=80': {
    kind: 'standalone',
    endpoint: { path: '/var/run/a b.sock' },
    database: 2,
    tls: false,
    username: 'u',
    password: 'p&@',
    ...plain,
    timeoutMs: 80,
  },
  'redis+cluster://h1:7000,h2,[::1]:7002': {
    kind: 'cluster',
    seeds: [at('h1', 7000), at('h2', 6379), at('::1', 7002)],
    ...open,
  },
  'rediss+cluster://u:p@h1/0': {
    kind: 'cluster',
    seeds: [at('h1', 6379)],
    tls: true,
    username: 'u',
    password: 'p',
    ...plain,
  },
  'redis+sentinel://h1,h2:26380/my%20primary': {
    kind: 'sentinel',
    sentinels: [at('h1', 26_379), at('h2', 26_380)],
    sentinelPassword: null,
    service: 'my primary',
    database: 0,
    ...open,
  },
  'rediss+sentinel://u:p@[2001:db8::1]:26379/s/2': {
    kind: 'sentinel',
    sentinels: [at('2001:db8::1', 26_379)],
    sentinelPassword: null,
    service: 's',
    database: 2,
    tls: true,
    username: 'u',
    password: 'p',
    ...plain,
  },
  'redis://h?timeout_ms=250': {
    kind: 'standalone',
    endpoint: at('h', 6379),
    database: 0,
    ...open,
    timeoutMs: 250,
  },
  'rediss+cluster://h1/?ca=/etc/tls/ca%20one.pem&cert=c+1.pem&key=k.pem': {
    kind: 'cluster',
    seeds: [at('h1', 6379)],
    ...open,
    tls: true,
    tlsFiles: { ca: '/etc/tls/ca one.pem', cert: 'c+1.pem', key: 'k.pem' },
  },
  'redis+sentinel://h1/s/1?sentinel_password=p%26%23%40+1&ca=&timeout_ms=': {
    kind: 'sentinel',
    sentinels: [at('h1', 26_379)],
    sentinelPassword: 'p&#@+1',
    service: 's',
    database: 1,
    ...open,
  },
};

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /such as redis:\/\//],
  ['localhost:6379', /such as redis:\/\//],
  ['http://localhost', /such as redis:\/\//],
  ['redis+tls://localhost', /such as redis:\/\//],
  ['redis:///run/redis.sock', /lacks a host/],
  ['redis://', /lacks a host/],
  ['redis://:6379', /lacks a host/],
  ['redis+cluster://h1,,h2', /lacks a host/],
  ['redis://h/0?db=1', /after the \? it takes only ca, cert, key, sentinel_password, timeout_ms/],
  ['redis://h?ca=a&ca=b', /ca appears twice/],
  ['redis://h?timeout_ms=0', /timeout_ms must be a whole number from 1 to 10000/],
  ['redis://h?timeout_ms=10001', /timeout_ms must be/],
  ['redis://h?timeout_ms=1e3', /timeout_ms must be/],
  ['redis://h?sentinel_password=x', /sentinel_password needs an address that begins with redis\+sentinel/],
  ['redis+cluster://h?sentinel_password=x', /sentinel_password needs/],
  ['redis://h#x', /# is written %23/],
  ['redis://:p?w@h', /\? is written %3F/],
  ['redis://:p#w@h', /%23/],
  ['redis://h/a', /number of a database/],
  ['redis://h/123456', /number of a database/],
  ['redis://h1,h2', /redis\+cluster:\/\/ or redis\+sentinel:\/\//],
  ['redis://h:0', /port of h must be/],
  ['redis://h:65536', /port of h must be/],
  ['redis://h:', /port of h must be/],
  ['redis://h:12x', /port of h must be/],
  ['redis://::1', /brackets/],
  ['redis://[::1', /brackets/],
  ['redis://[h]:1', /neither a host name nor an address/],
  ['redis://h ost', /neither a host name nor an address/],
  ['redis://secret@h', /user:password/],
  ['redis://user:@h', /user:password/],
  ['redis://u:100%@h', /% in the password must be written as %25/],
  ['redis://1%:p@h', /% in the user must be written as %25/],
  ['unix:run/redis.sock', /absolute path.*unix:\/run\/redis\.sock/],
  ['unix://host/run/redis.sock', /absolute path/],
  ['unix:/', /absolute path/],
  ['unix:/a?db=x', /number of a database/],
  ['unix:/a?username=u', /username needs a password/],
  ['redis://h?password=p', /takes only/],
  ['unix:/a?nothing=1', /takes only/],
  ['unix:/a#b', /%23/],
  [`unix:/${'a'.repeat(108)}`, /at most 107 bytes/],
  ['redis+cluster://h/1', /no databases/],
  ['redis+sentinel://h', /name of the service/],
  ['redis+sentinel://h/', /name of the service/],
  ['redis+sentinel://h/s/0/x', /name of the service/],
  ['redis+sentinel://h/s/x', /number of a database/],
  ['redis+sentinel://h/%zz', /% in the name of the service/],
  [`redis+cluster://${'h,'.repeat(64)}h`, /at most 64 hosts/],
];

t.test('reads valid addresses', async (t) => {
  for (const [text, address] of Object.entries(understood))
    t.strictSame(parseStoreAddress(text), address, text);
});

t.test('invalid addresses get one sentence', async (t) => {
  for (const [text, sentence] of refused)
    t.throws(() => parseStoreAddress(text), { message: sentence }, text);
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
