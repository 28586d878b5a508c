/** Tests how each kind of proxy describes a request, and that incomplete descriptions are refused. */
import t from 'tap';
import { authorizationRequestOf as requestOf } from '#gateway/decision-listener/authorization-request.ts';

/** No policy has hosts. */
const authorizationRequestOf = (method: string, target: string, fields: readonly string[]) =>
  requestOf(method, target, fields, false);

const FOR = ['X-Forwarded-For', '192.0.2.1'];
const METHOD = ['X-Forwarded-Method', 'POST'];
const URI = ['X-Forwarded-Uri', '/a%20b?c=d'];

t.test('forward-auth and auth-request: reads method and target from header fields', async (t) => {
  for (const dialect of ['forward-auth', 'auth-request']) {
    for (const path of [`/${dialect}`, `/${dialect}?x=1`]) {
      t.strictSame(authorizationRequestOf('GET', path, [...FOR, ...METHOD, ...URI]), {
        dialect,
        method: 'POST',
        target: '/a%20b?c=d',
        status: 0,
      });
    }
  }
});

t.test('ext-authz: reads the method of the request, and the target behind the prefix', async (t) => {
  const question = { dialect: 'ext-authz', method: 'PUT', status: 0 };
  t.strictSame(authorizationRequestOf('PUT', '/ext-authz/a/b?c', FOR), { ...question, target: '/a/b?c' });
  t.strictSame(authorizationRequestOf('PUT', '/ext-authz/', FOR), { ...question, target: '/' });
  t.strictSame(authorizationRequestOf('PUT', '/ext-authz//a', FOR), { ...question, target: '//a' });
  const forged = [...FOR, 'X-Forwarded-Uri', '/free', 'X-Forwarded-Method', 'OPTIONS'];
  t.strictSame(
    authorizationRequestOf('PUT', '/ext-authz/a', forged),
    { ...question, target: '/a' },
    'fields of the client are ignored',
  );
});

t.test('names fields that are missing, repeated or malformed', async (t) => {
  const refused = (target: string, ...fields: readonly string[][]): string => {
    const question = authorizationRequestOf('GET', target, fields.flat());
    return typeof question === 'string' ? question : 'allowed';
  };
  const STATUS = ['X-Reply-Status', '401'];
  for (const target of ['/forward-auth', '/auth-request', '/replied']) {
    t.match(refused(target, ['X-Forwarded-For', ' '], METHOD, URI), /^the proxy sent no X-Forwarded-For: /);
    t.match(refused(target, FOR, METHOD, METHOD, URI), /^the proxy sent X-Forwarded-Method more than once/);
    t.match(refused(target, FOR, METHOD, URI, URI), /^the proxy sent X-Forwarded-Uri more than once/);
  }
  for (const target of ['/', '/a', '/ext-authz', '/ext-authzs/a', '*', '/forward-auth/', '/Forward-Auth'])
    t.match(refused(target, FOR, METHOD, URI), /^use \/forward-auth/, target);
  t.match(authorizationRequestOf('GET', '/replied', [FOR, METHOD, URI, STATUS].flat()), {
    dialect: 'replied',
    method: 'POST',
    status: 401,
  });
  for (const status of [[], ['X-Reply-Status', ''], ['X-Reply-Status', '200, 401'], ['X-Reply-Status', '0']])
    t.match(refused('/replied', FOR, METHOD, URI, status), /^the proxy sent no X-Reply-Status/);
  t.match(refused('/replied', FOR, METHOD, URI, STATUS, STATUS), /X-Reply-Status more than once/);
});
