/** DATABASE_URL is read, or refused with a sentence that does not repeat a password. */
import t from 'tap';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { PostgresLocation } from '#api/db/postgres-address.ts';

function postgres(url: string): PostgresLocation {
  const location = parseDatabaseUrl(url, '/srv');
  if (location.kind !== 'postgres') throw new Error(location.kind);
  return location;
}

t.test('reads every part of a server’s address', async (t) => {
  for (const scheme of ['postgres', 'postgresql']) {
    const location = postgres(`${scheme}://me:p%40ss%2F@db.example.com:6432/feed%20back`);
    const { password, ...rest } = location;
    t.strictSame(rest, {
      kind: 'postgres',
      host: 'db.example.com',
      port: 6432,
      database: 'feed back',
      user: 'me',
      schema: null,
      applicationName: 'floodgate',
      tls: { kind: 'off' },
      settings: {},
    });
    t.equal(password(), 'p@ss/');
    t.notMatch(JSON.stringify(location), 'p@ss', 'the logged location has no password');
  }
  t.match(postgres('postgres://me@[::1]/x'), { host: '::1', port: 5432 });
  t.match(postgres('postgres://me@/x?host=/run/postgresql'), { host: '/run/postgresql' });
  t.match(postgres('postgres://me:pw@%2Frun%2Fpostgresql/x'), { host: '/run/postgresql' });
  t.match(postgres('postgres://me@h/x?schema=survey_data&application_name=api'), {
    schema: 'survey_data',
    applicationName: 'api',
  });
});

t.test('reads the connection settings of an address', async (t) => {
  t.strictSame(
    postgres(
      'postgres://me@h/x?synchronous=normal&pool_size=3&statement_timeout_ms=1500&wait_seconds=0&sslmode=disable',
    ).settings,
    { synchronous: 'normal', poolSize: 3, statementTimeoutMs: 1500, waitMs: 0 },
  );
  t.strictSame(parseDatabaseUrl('file:data/x.sqlite?synchronous=normal', '/srv'), {
    kind: 'file',
    path: '/srv/data/x.sqlite',
    synchronous: 'normal',
  });
  t.strictSame(parseDatabaseUrl('file:///x.sqlite', '/srv'), { kind: 'file', path: '/x.sqlite' });
});

t.test('TLS verifies the server, unless the address switches that off', async (t) => {
  const tls = (query: string) => postgres(`postgres://me@h/x?${query}`).tls;
  t.match(tls('sslmode=disable'), { kind: 'off' });
  t.match(tls('sslmode=verify-full&sslrootcert=/etc/ca.pem'), {
    checks: 'full',
    rootCertificate: '/etc/ca.pem',
  });
  t.match(tls('sslmode=require'), { checks: 'full', rootCertificate: null });
  t.match(tls('sslmode=verify-ca'), { checks: 'authority' });
  t.match(tls('sslmode=no-verify'), { checks: 'nobody' });
  t.match(tls('sslmode=verify-full&sslcert=a.pem&sslkey=b.pem'), { certificate: 'a.pem', key: 'b.pem' });
});

const wrong: readonly (readonly [string, RegExp])[] = [
  ['postgres://h/x', /a user and a database/],
  ['postgres://me:hunter2@h', /a user and a database/],
  ['postgres://me:hunter2@h/', /a user and a database/],
  ['postgres://me:hunter2#@h/x', /%23/],
  ['postgres://me:hunter2/@h/x', /%2F/],
  ['postgres://me:hunter2%@h/x', /%25/],
  ['postgres://me:hunter2@h:port/x', /not a PostgreSQL address/],
  ['postgres://me:hunter2@a,b/x', /one server/],
  ['postgres://me:hunter2@h/x?sslmode=prefer', /verify-full/],
  ['postgres://me:hunter2@h/x?sslrootcert=/ca.pem', /sslmode=verify-full/],
  ['postgres://me:hunter2@h/x?connect_timeout=3', /connect_timeout is not known here; .* pool_size,/],
  ['postgres://me:hunter2@h/x?pool_size=3&pool_size=4', /pool_size appears twice/],
  ['postgres://me:hunter2@h/x?pool_size=0', /pool_size must be a whole number from 1 to 500/],
  ['postgres://me:hunter2@h/x?pool_size=501', /pool_size must be/],
  ['postgres://me:hunter2@h/x?statement_timeout_ms=99', /statement_timeout_ms must be .* from 100 to 600000/],
  ['postgres://me:hunter2@h/x?wait_seconds=-1', /wait_seconds must be .* from 0 to 3600/],
  ['postgres://me:hunter2@h/x?synchronous=off', /synchronous is full or normal/],
  ['file:/x.sqlite?pool_size=3', /pool_size is not known here; this address may have synchronous/],
  ['file:/x.sqlite?synchronous=0', /synchronous is full or normal/],
  ['file:?synchronous=full', /give file: and a path/],
  ['postgres://me:hunter2@h/x?schema=a;b', /schema/],
  ['mysql://me:hunter2@h/x', /postgres:\/\/user/],
];
for (const [url, message] of wrong) {
  t.test(`refused: ${url}`, async (t) => {
    t.throws(() => parseDatabaseUrl(url, '/srv'), message);
    t.throws(() => parseDatabaseUrl(url, '/srv'), { message: /^(?!.*hunter2)/ }, 'the error has no password');
  });
}
