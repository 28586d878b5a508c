/** DATABASE_URL is read, or refused with a sentence that does not repeat a password. */
import t from 'tap';
import { parseDatabaseUrl } from '#api/db/location.ts';

for (const [url, expected] of [
  ['file:data/x.sqlite', { kind: 'file', path: '/srv/data/x.sqlite' }],
  ['file:///x.sqlite', { kind: 'file', path: '/x.sqlite' }],
  [
    'postgresql://me:p%40ss%2F@db.example.com:6432/feed%20back?pool_size=3&statement_timeout=1500',
    {
      poolSize: 3,
      config: {
        ...{ host: 'db.example.com', port: 6432, database: 'feed back', user: 'me', password: Function },
        statement_timeout: '1500',
      },
    },
  ],
  ['postgres://me@[::1]/x', { poolSize: 10, config: { host: '::1', database: 'x' } }],
  ['postgres://me@/x?host=/run/postgresql', { config: { host: '/run/postgresql', database: 'x' } }],
  ['postgres://me:pw@%2Frun%2Fpostgresql/x', { config: { host: '/run/postgresql', database: 'x' } }],
  ['postgres://me@h/x?sslmode=disable', { config: { ssl: false } }],
  ['postgres://me@h/x?sslmode=no-verify', { config: { ssl: { rejectUnauthorized: false } } }],
] as const) {
  t.test(url, async (t) => t.match(parseDatabaseUrl(url, '/srv'), expected));
}

t.test('TLS verifies the server, unless the address switches that off', async (t) => {
  for (const mode of ['require', 'verify-full']) {
    const location = parseDatabaseUrl(`postgres://me@h/x?sslmode=${mode}`, '/');
    const ssl = location.kind === 'postgres' ? location.config.ssl : null;
    t.equal(JSON.stringify(ssl), '{}', mode);
  }
});

for (const [url, message] of [
  ['postgres://h/x', /a user and a database/],
  ['postgres://me:hunter2@h', /a user and a database/],
  ['postgres://me:hunter2@h:port/x', /cannot be used .*; give one such as/],
  ['postgres://me:hunter2#@h/x', /%23/],
  ['postgres://me:hunter2/@h/x', /%2F/],
  ['postgres://me:hun?ter2@h/x', /%3F/],
  ['postgres://me:hunter2@h/x?sslmode=verify-full&sslrootcert=/no/ca.pem', /no such file.*\/no\/ca.pem/],
  ['postgres://me:hunter2@h/x?sslmode=verify-ca', /sslrootcert/],
  ['postgres://me:hunter2@h/x?sslmode=prefer', /verify-full/],
  ['postgres://me:hunter2@h/x?sslrootcert=/dev/null', /sslmode=verify-full/],
  ['postgres://me:hunter2@h/x?sslmod=verify-full', /sslmod is not known here; .* pool_size/],
  ['postgres://me:hunter2@h/x?pool_size=0', /pool_size must be a whole number from 1 to 500/],
  ['file:?x', /give file: and a path/],
  ['mysql://me:hunter2@h/x', /postgres:\/\/user/],
] as const) {
  t.test(`refused: ${url}`, async (t) => {
    t.throws(() => parseDatabaseUrl(url, '/srv'), message);
    t.throws(() => parseDatabaseUrl(url, '/srv'), { message: /^(?!.*(hunter2|ter2@))/ }, 'no password');
  });
}
