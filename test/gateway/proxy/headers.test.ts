import t from 'tap';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { send, startRawUpstream, values } from './exchange.ts';

const LIMITED = policyFile(
  'name: env, route: "GET /api/v1/client/{id}/environment", identifier: ip, limit: 2, window: 366d',
);
const HANDSHAKE = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '99' };
const ENVIRONMENT = '/api/v1/client/w/environment';

/** Returns the header section that the upstream got of a raw request. */
async function seenBy(port: number, fields: string): Promise<string[]> {
  const client = sendRaw(port, `GET / HTTP/1.1\r\n${fields}\r\n`);
  const text = await client.until(/\}$/);
  client.socket.destroy();
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).headers;
}

t.test('to the upstream: removes hop-by-hop fields, and those that Connection names', async (t) => {
  const { port } = await startTestGateway(t);
  const headers = await seenBy(
    port,
    [
      'Host: app.test',
      'Connection: keep-alive, X-One, host, content-length',
      'Connection: X-Two',
      'Connection: close',
      'X-One: 1',
      'x-two: 2',
      'X-Kept: 3',
      'Keep-Alive: timeout=5',
      'Proxy-Connection: keep-alive',
      'Proxy-Authorization: Basic Zm9v',
      'Proxy-Authenticate: Basic',
      'TE: trailers',
      'Trailer: X-Sum',
      'Upgrade: foo',
      '',
    ].join('\r\n'),
  );
  const names = headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  t.same(names.sort(), [
    'connection',
    'host',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-kept',
  ]);
  t.same(values(headers, 'connection'), ['keep-alive'], 'the gateway sends its own Connection');
  t.same(values(headers, 'host'), ['app.test']);
});

t.test(
  'to the upstream: HTTP/1.0 without Host gets the address that the client has connected to',
  async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      res.writeHead(302, {
        location: `http://${req.headers.host}/login`,
        'x-seen': String(req.headers['x-forwarded-host']),
      });
      res.end(`Host: ${req.headers.host}`);
    });
    for (const GATEWAY_OWN_PARSER of ['1', '0']) {
      const { port } = await startTestGateway(t, {
        upstream,
        policies: policyFile(),
        env: { GATEWAY_OWN_PARSER, ...BEHIND_PROXY },
      });
      const redirect = (text: string): Promise<string> => sendRaw(port, `${text}\r\n\r\n`).ended();
      const own = `http://127.0.0.1:${port}/login`;
      t.match(await redirect('GET / HTTP/1.0'), `location: ${own}\r\nx-seen: 127.0.0.1:${port}\r\n`);
      t.match(await redirect('GET / HTTP/1.0'), `Host: 127.0.0.1:${port}`);
      t.match(await redirect('GET / HTTP/1.0\r\nHost: b.test'), 'location: http://b.test/login');
      t.match(await redirect('GET http://c.test/ HTTP/1.0'), 'location: http://c.test/login');
      const forwarded = await redirect('GET / HTTP/1.0\r\nX-Forwarded-Host: d.test');
      t.match(forwarded, `location: ${own}\r\nx-seen: d.test\r\n`, 'that of a trusted proxy is kept');
    }
  },
);

t.test('to the client: removes hop-by-hop fields, and those that Connection names', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(
      [
        'HTTP/1.1 200 OK',
        'Connection: x-one',
        'Connection: keep-alive, X-Two',
        'X-One: 1',
        'X-Two: 2',
        'X-Kept: 3',
        'Keep-Alive: timeout=7',
        'Proxy-Authenticate: Basic',
        'Proxy-Connection: keep-alive',
        'TE: trailers',
        'Trailer: X-Sum',
        'Upgrade: h2c',
        'Transfer-Encoding: chunked',
        '',
        '0',
        'X-Sum: 1',
        '',
        '',
      ].join('\r\n'),
    );
  });
  const { port } = await startTestGateway(t, { upstream });
  const { rawHeaders } = await send(port, '/');
  const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  t.same(names.filter((name) => !['date', 'connection', 'keep-alive'].includes(name)).sort(), [
    'content-length',
    'x-kept',
  ]);
  t.notMatch(values(rawHeaders, 'keep-alive'), ['timeout=7']);
  t.notMatch(values(rawHeaders, 'connection').join(), /x-one|x-two/i);
});

t.test(
  'X-Forwarded-*: appends to For; replaces Proto and Host unless a trusted proxy sent them',
  async (t) => {
    const fields =
      'Host: app.test\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: outside.test\r\nForwarded: for=192.0.2.3\r\nX-Real-IP: 192.0.2.4\r\nConnection: x-forwarded-for\r\n';
    const stranger = await startTestGateway(t);
    const one = await seenBy(stranger.port, fields);
    t.same(values(one, 'x-forwarded-for'), ['192.0.2.1, 192.0.2.2, 127.0.0.1']);
    t.same(values(one, 'x-forwarded-proto'), ['http']);
    t.same(values(one, 'x-forwarded-host'), ['app.test']);
    t.same(
      [...values(one, 'forwarded'), ...values(one, 'x-real-ip')],
      [],
      'an untrusted peer sets no other address header',
    );

    const trusted = await startTestGateway(t, { env: { GATEWAY_TRUSTED_PROXIES: '127.0.0.0/8' } });
    const two = await seenBy(trusted.port, fields);
    t.same(values(two, 'x-forwarded-for'), ['192.0.2.1, 192.0.2.2, 127.0.0.1']);
    t.same(values(two, 'x-forwarded-proto'), ['https']);
    t.same(values(two, 'x-forwarded-host'), ['outside.test']);
    t.same([...values(two, 'forwarded'), ...values(two, 'x-real-ip')], ['for=192.0.2.3', '192.0.2.4']);

    const plain = await seenBy(stranger.port, 'Host: app.test\r\n');
    t.same(values(plain, 'x-forwarded-for'), ['127.0.0.1']);
  },
);

t.test('only the gateway can send x-gateway-*', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    res.setHeader('X-Gateway-RateLimited', 'true');
    res.end(JSON.stringify({ headers: req.rawHeaders }));
  });
  const { port } = await startTestGateway(t, { upstream });
  const headers = await seenBy(
    port,
    'Host: a\r\nX-Gateway-Ratelimited: true\r\nx-gateway-anything: 1\r\nx-gate: 2\r\n',
  );
  t.notMatch(headers.join(), /x-gateway/i);
  t.same(values(headers, 'x-gate'), ['2']);
  t.equal((await send(port, '/')).headers['x-gateway-ratelimited'], undefined);
});

t.test(
  'names keep their case, values their bytes, repeated fields their order, in both directions',
  async (t) => {
    const latin1 = 'Gr\xfc\xdfe \x80\xff\ttab';
    let seen = '';
    const upstream = await startRawUpstream(t, (socket, text) => {
      seen = text;
      socket.write(
        `HTTP/1.1 200 OK\r\nX-CaSe: ${latin1}\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nset-cookie: a=3\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok`,
        'latin1',
      );
    });
    const { port } = await startTestGateway(t, { upstream });
    const client = sendRaw(
      port,
      `GET /?q=%FC HTTP/1.1\r\nHost: a\r\nX-CaSe: ${latin1}\r\nX-More: 1\r\nCookie: a=1\r\nx-more: 2\r\nX-Empty:\r\n\r\n`,
    );
    const text = await client.until(/ok$/);
    client.socket.destroy();
    t.match(seen, /^GET \/\?q=%FC HTTP\/1\.1\r\n/);
    t.ok(
      seen.includes(`\r\nX-CaSe: ${latin1}\r\nX-More: 1\r\nCookie: a=1\r\nx-more: 2\r\nX-Empty: \r\n`),
      seen,
    );
    t.ok(
      text.includes(
        `\r\nX-CaSe: ${latin1}\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nset-cookie: a=3\r\nX-Empty: \r\n`,
      ),
      text,
    );
  },
);

t.test('removes the limit headers of the upstream on covered routes only', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.setHeader('X-RateLimit-Limit', '7');
    res.setHeader('RateLimit', '"app";r=1;t=1');
    res.end();
  });
  const { port } = await startTestGateway(t, { upstream, policies: LIMITED });
  const covered = await send(port, ENVIRONMENT);
  t.same(values(covered.rawHeaders, 'x-ratelimit-limit'), ['2']);
  t.equal(values(covered.rawHeaders, 'ratelimit').length, 1);
  t.match(covered.headers.ratelimit, /^"env";r=1;t=\d+$/);
  const free = await send(port, '/free');
  t.same(values(free.rawHeaders, 'x-ratelimit-limit'), ['7']);
});

t.test(
  'client routes: replies of the application keep their CORS policy, and expose the limits',
  async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      for (const [name, value] of Object.entries(req.headers))
        if (name.startsWith('x-say-')) res.setHeader(name.slice('x-say-'.length), String(value));
      res.end('ok');
    });
    const { port } = await startTestGateway(t, {
      upstream,
      policies: policyFile(
        'name: env, route: "GET /api/v1/client/{id}/environment", identifier: ip, limit: 5, window: 366d',
        'name: other, route: GET /covered, identifier: ip, limit: 5, window: 366d',
      ),
    });
    const cors = async (path: string, headers: Record<string, string> = {}): Promise<string[][]> => {
      const { status, rawHeaders } = await send(port, path, { headers });
      t.equal(status, 200);
      return ['origin', 'credentials', 'methods']
        .map((name) => values(rawHeaders, `access-control-allow-${name}`))
        .concat([values(rawHeaders, 'access-control-expose-headers')]);
    };
    const limits = 'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ratelimit-policy, ratelimit';
    t.same(await cors(ENVIRONMENT), [[], [], [], [limits]], 'the application allows no origin');
    const own = {
      'x-say-access-control-allow-origin': 'https://one.test',
      'x-say-access-control-expose-headers': 'X-Total',
    };
    t.same(
      await cors(ENVIRONMENT, own),
      [['https://one.test'], [], [], ['X-Total', limits]],
      'the application’s list is extended',
    );
    for (const all of ['*', 'x-a, *'])
      t.same(await cors(ENVIRONMENT, { 'x-say-access-control-expose-headers': all }), [[], [], [], [all]]);
    const hidden = {
      'x-say-connection': 'Access-Control-Expose-Headers',
      'x-say-access-control-expose-headers': '*',
    };
    t.same(await cors(ENVIRONMENT, hidden), [[], [], [], [limits]], 'hop-by-hop CORS fields do not count');
    t.same(await cors('/api/v2/client/w'), [[], [], [], []], 'without limit headers to expose');
    t.same(await cors('/api/v2/client/w', own), [['https://one.test'], [], [], ['X-Total']]);
    t.same(await cors('/covered'), [[], [], [], []], 'the path is no client route');
  },
);

t.test('to the client: a 204 has no Content-Length, whatever the upstream sends', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-Kept: 1\r\n\r\n');
  });
  const { port } = await startTestGateway(t, { upstream });
  const { status, rawHeaders } = await send(port, '/');
  t.equal(status, 204);
  t.same(values(rawHeaders, 'content-length'), []);
  t.same(values(rawHeaders, 'x-kept'), ['1']);
});

for (const parser of ['0', '1'])
  t.test(`own parser ${parser}: a 426 says which protocols the application wants`, async (t) => {
    const upstream = await startRawUpstream(t, (socket, text) => {
      const status = /^GET \/(\d+)/.exec(text)?.[1];
      socket.end(
        `HTTP/1.1 ${status} x\r\nUpgrade: websocket\r\nUpgrade: tcp\r\nConnection: Upgrade, X-One\r\nX-One: 1\r\nContent-Length: 2\r\n\r\nno`,
      );
    });
    const { port } = await startTestGateway(t, { upstream, env: { GATEWAY_OWN_PARSER: parser } });
    const ask = (status: number, headers: Record<string, string> = {}) =>
      send(port, `/${status}`, { headers: { connection: 'keep-alive', ...headers } });
    const required = await ask(426);
    t.same(values(required.rawHeaders, 'upgrade'), ['websocket', 'tcp']);
    t.same(values(required.rawHeaders, 'connection'), ['upgrade, keep-alive']);
    t.same(values(required.rawHeaders, 'x-one'), []);
    const asked = await ask(426, { connection: 'upgrade', upgrade: 'h2c' });
    t.same(values(asked.rawHeaders, 'connection'), ['upgrade, keep-alive']);
    for (const closing of [await ask(426, { connection: 'close' }), await ask(426, HANDSHAKE)]) {
      t.same(values(closing.rawHeaders, 'upgrade'), ['websocket', 'tcp']);
      t.same(values(closing.rawHeaders, 'connection'), ['upgrade, close']);
    }
    const old = sendRaw(port, 'GET /426 HTTP/1.0\r\n\r\n');
    t.match(await old.ended(), /\r\nConnection: upgrade, close\r\n/, 'the connection is closed');
    const ordinary = await ask(200);
    t.same(values(ordinary.rawHeaders, 'upgrade'), [], 'no other reply offers a protocol');
    t.same(values(ordinary.rawHeaders, 'connection'), ['keep-alive']);
  });
