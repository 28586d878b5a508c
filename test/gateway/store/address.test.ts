import t from 'tap';
import { endpointName, parseStoreAddress, type StoreAddress } from '#gateway/store/address.ts';

const open = { tls: false, username: null, password: null };
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
  },
  'redis://:secret@h': {
    kind: 'standalone',
    endpoint: at('h', 6379),
    database: 0,
    tls: false,
    username: null,
    password: 'secret',
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
  },
  'redis+sentinel://h1,h2:26380/my%20primary': {
    kind: 'sentinel',
    sentinels: [at('h1', 26_379), at('h2', 26_380)],
    service: 'my primary',
    database: 0,
    ...open,
  },
  'rediss+sentinel://u:p@[2001:db8::1]:26379/s/2': {
    kind: 'sentinel',
    sentinels: [at('2001:db8::1', 26_379)],
    service: 's',
    database: 2,
    tls: true,
    username: 'u',
    password: 'p',
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
  ['redis://h/0?db=1', /options behind \? or #/],
  ['redis://h#x', /options behind \? or #/],
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
  ['redis+cluster://h/1', /no databases/],
  ['redis+sentinel://h', /name of the service/],
  ['redis+sentinel://h/', /name of the service/],
  ['redis+sentinel://h/s/0/x', /name of the service/],
  ['redis+sentinel://h/s/x', /number of a database/],
  ['redis+sentinel://h/%zz', /% in the name of the service/],
  [`redis+cluster://${'h,'.repeat(64)}h`, /at most 64 hosts/],
];

t.test('understood', async (t) => {
  for (const [text, address] of Object.entries(understood))
    t.strictSame(parseStoreAddress(text), address, text);
});

t.test('refused in one sentence', async (t) => {
  for (const [text, sentence] of refused)
    t.throws(() => parseStoreAddress(text), { message: sentence }, text);
});

t.test('no sentence tells the password', async (t) => {
  for (const text of [
    'redis://u:hunter2@h:0',
    'redis://u:hunter2@',
    'redis://u:hunter2@h?x',
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

t.test('an endpoint is named so that it can be read again', async (t) => {
  for (const name of ['h:1', '[::1]:6379', '10.0.0.1:7000']) {
    const address = parseStoreAddress(`redis://${name}`);
    if (address.kind === 'standalone') t.equal(endpointName(address.endpoint), name);
  }
});
