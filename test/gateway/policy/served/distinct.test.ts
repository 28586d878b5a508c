/** Policies with `distinct` on running gateways: the limit is a number of different values. */
import t from 'tap';
import { type Answer, send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const LOGINS = policyFile(
  'name: accounts, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 5, window: 366d',
  'name: strict, route: "POST /strict", identifier: ip, distinct: { body: email, required: true }, limit: 5, window: 366d',
  'name: tried, route: "POST /tried", identifier: ip, distinct: { body: email, required: true }, limit: 2, window: 366d, mode: shadow',
);

interface Login {
  /** Last part of the client's address. */
  readonly from: number;
  readonly path?: string;
  readonly type?: string;
}

function login(port: number, body: string, { from, path = '/login', type = 'application/json' }: Login) {
  const headers = { 'content-type': type, 'x-forwarded-for': `192.0.2.${from}` };
  return send(port, path, { method: 'POST', headers, body });
}

const withEmail = (email: string): string => JSON.stringify({ email, password: 'x' });

const passed = (answers: readonly Answer[]): number => answers.filter(({ status }) => status === 200).length;

t.test('a client may use so many different values, and each of them again', async (t) => {
  await insideLongWindow();
  await onEachStore(t, { policies: LOGINS, env: BEHIND_PROXY }, async (t, one, two) => {
    const portOf = (i: number): number => (i % 2 === 0 ? one : two).port;

    const answers: Answer[] = [];
    for (const [i, name] of ['a', 'b', 'a', 'c', 'd', 'A', 'e', 'f', 'b', 'g', 'f', 'e'].entries())
      answers.push(await login(portOf(i), withEmail(`${name}@example.org`), { from: 1 }));
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200, 200, 200, 200, 200, 429, 200, 429, 429, 200],
    );
    t.strictSame(
      answers.map(({ headers }) => /r=(\d+)/.exec(String(headers.ratelimit))?.[1]),
      ['4', '3', '3', '2', '1', '1', '0', '0', '0', '0', '0', '0'],
      'remaining is the number of new values that are left',
    );
    t.match(answers[7]?.headers, { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0' });
    const denied = JSON.parse(answers[7]?.body.toString() ?? '');
    t.strictSame(denied['violated-policies'], ['accounts']);
    t.match(JSON.stringify(denied), /5 different values/);
    t.match(await two.gateway.findDecision(denied.decision), { policy: 'accounts', used: 5, limit: 5 });
    t.match(
      await login(one.port, withEmail('f@example.org'), { from: 2 }),
      { status: 200 },
      'another client',
    );
  });
});

t.test(
  'exact at once: the same value of one moment counts once, and different ones do not share',
  async (t) => {
    await insideLongWindow();
    await onEachStore(t, { policies: LOGINS, env: BEHIND_PROXY }, async (t, one, two) => {
      const portOf = (i: number): number => (i % 2 === 0 ? one : two).port;
      const answers = await Promise.all(
        Array.from({ length: 80 }, async (_, i) => ({
          name: i % 20,
          answer: await login(portOf(i >> 1), withEmail(`${i % 20}@example.org`), { from: 1 }),
        })),
      );
      const admitted = answers.filter(({ answer }) => answer.status === 200).map(({ name }) => name);
      t.equal(new Set(admitted).size, 5);
      t.equal(admitted.length, 20, 'each of them as often as it was sent');
    });
  },
);

t.test('a request without the value is not counted, or is refused if the value is required', async (t) => {
  await insideLongWindow();
  await onEachStore(t, { policies: LOGINS, env: BEHIND_PROXY }, async (t, one, two) => {
    const bodies = ['{}', '{"email":null}', '{"email":""}', withEmail('a'.repeat(9000)), '[]'];
    for (const [i, body] of bodies.entries()) {
      const { port } = i % 2 === 0 ? one : two;
      t.match(await login(port, body, { from: 1 }), { status: 200, headers: { ratelimit: undefined } });
      t.match(await login(port, body, { from: 1, path: '/strict' }), { status: 400 });
      t.match(
        await login(port, body, { from: 1, path: '/tried' }),
        { status: 200 },
        'shadow refuses nothing',
      );
    }
    t.match(await login(one.port, '{"email":"a","Email":"b"}', { from: 1 }), { status: 400 }, 'two values');
    const form = { from: 1, type: 'application/x-www-form-urlencoded' };
    t.match(await login(one.port, 'email=a', form), {
      status: 200,
      headers: { 'x-ratelimit-remaining': '4' },
    });
    t.match(await login(two.port, withEmail('Á'), { from: 1 }), {
      headers: { 'x-ratelimit-remaining': '4' },
    });
  });
});

t.test('shadow and mark count the values, and deny nobody', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: tried, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 2, window: 366d, mode: shadow',
    'name: marked, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 3, window: 366d, mode: mark',
  );
  await onEachStore(t, { policies, env: BEHIND_PROXY }, async (t, one, two) => {
    const marks: (string | undefined)[] = [];
    for (const [i, name] of ['a', 'b', 'c', 'a', 'd', 'c'].entries()) {
      const { status, body } = await login((i % 2 === 0 ? one : two).port, withEmail(name), { from: 1 });
      t.equal(status, 200);
      const { headers } = JSON.parse(body.toString());
      marks.push(headers[headers.indexOf('x-gateway-over') + 1]);
    }
    t.strictSame(
      marks.map((mark) => mark === 'marked'),
      [false, false, false, false, true, false],
    );
    const decided = [...new Set([one, two])]
      .map(({ sample }) =>
        sample('floodgate_policy_decisions_total', { policy: 'tried', decision: 'shadow_denied' }),
      )
      .reduce((all, own) => all + Math.max(0, own), 0);
    t.equal(decided, 3, 'c twice and d once');
  });
});

t.test('values of paths, queries, headers and identifiers', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: pages, route: "GET /site/*", identifier: ip, distinct: path, limit: 3, window: 366d',
    'name: products, route: "GET /products/{id}/*", identifier: ip, distinct: path.id, limit: 3, window: day',
    'name: searches, route: "GET /search", identifier: ip, distinct: { query: q }, limit: 3, window: month',
    'name: devices, route: "GET /device", identifier: ip, distinct: { header: X-Device }, limit: 3, window: 366d',
    'name: addresses, route: "GET /key", identifier: api-key, distinct: ip, limit: 3, window: 366d',
  );
  await onEachStore(t, { policies, env: BEHIND_PROXY }, async (t, one, two) => {
    const statuses = async (
      asked: readonly (readonly [path: string, headers?: Readonly<Record<string, string>>])[],
    ): Promise<number[]> => {
      const found: number[] = [];
      for (const [i, [path, more]] of asked.entries()) {
        const headers = { 'x-forwarded-for': '192.0.2.1', ...more };
        found.push((await send((i % 2 === 0 ? one : two).port, path, { headers })).status);
      }
      return found;
    };
    const expected = [200, 200, 200, 200, 429, 200];
    const pages = ['/site/a', '/site/b', '/site/a/', '/site//%62?x=1', '/site/c/d', '/site/e'];
    t.strictSame(await statuses(pages.map((path) => [path])), [200, 200, 200, 200, 200, 429]);
    const products = ['/products/1/a', '/products/2/a', '/products/1/b', '/products/3/a', '/products/4/a'];
    t.strictSame(await statuses([...products, '/products/2/c'].map((path) => [path])), expected);
    const searches = ['/search?q=a', '/search?q=b', '/search?q=%61', '/search?q=c', '/search?Q=d', '/search'];
    t.strictSame(await statuses(searches.map((path) => [path])), expected);
    const devices = ['a', 'b', 'a ', 'c', 'd', 'b'].map((name) => ['/device', { 'x-device': name }] as const);
    t.strictSame(await statuses(devices), expected);
    const both = await send(one.port, '/device', { headers: { 'x-device': ['a', 'b'] } });
    t.match(both.body.toString(), /two different values of header\.x-device; send one/);
    t.strictSame(await statuses([['/device', { connection: 'x-device', 'x-device': 'e' }]]), [400]);
    const from = [1, 2, 1, 3, 4, 2].map(
      (last) => ['/key', { 'x-forwarded-for': `192.0.2.${last}`, 'x-api-key': 'key' }] as const,
    );
    t.strictSame(await statuses(from), expected, 'a key of at most three addresses');
  });
});

t.test('all or nothing: a request that another policy denies uses no value', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: accounts, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 5, window: 366d',
    'name: everybody, route: "POST /login", identifier: everyone, limit: 4, window: 366d',
    'name: check, route: "POST /check", bucket: accounts, identifier: ip, distinct: { body: email }, limit: 5, window: 366d',
  );
  await onEachStore(t, { policies, env: BEHIND_PROXY }, async (t, one, two) => {
    const portOf = (i: number): number => (i % 2 === 0 ? one : two).port;
    const answers = await Promise.all(
      Array.from({ length: 9 }, (_, i) => login(portOf(i), withEmail(`${i}`), { from: 1 })),
    );
    t.equal(passed(answers), 4);
    const later = await login(one.port, withEmail('new'), { from: 1, path: '/check' });
    t.match(later, { status: 200, headers: { 'x-ratelimit-remaining': '0' } }, 'the fifth');
  });
});

t.test('a flood of values leaves no more in the store than the limit, and no value itself', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const env = { ...BEHIND_PROXY, GATEWAY_REDIS_URL: redis.url };
  const { port } = await startTestGateway(t, { policies: LOGINS, env });
  for (let round = 0; round < 20; round++)
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => login(port, withEmail(`v${round}x${i}@example.org`), { from: 1 })),
    );
  const keys = (await redis.client.keys('*:values*')) as string[];
  t.equal(keys.length, 6, 'a counter and five values');
  for (const key of keys) {
    t.match(key, /^fg:\{[\w-]{22}\}:accounts:\d+:values(:[\w-]{22})?$/);
    t.ok(Number(await redis.client.pttl(key)) > 0, 'it expires');
  }
});
