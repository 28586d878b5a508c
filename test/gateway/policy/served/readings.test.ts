/** Spellings that servers read in several ways: each reading is counted, and what was sent is forwarded. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test('all spellings of a path share one limit, and arrive as they were sent', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (req, res) => res.end(req.url));
  const policies = policyFile('name: docs, route: "GET /docs/a", identifier: ip, limit: 10, window: 366d');
  await onEachStore(t, { upstream, policies }, async (t, { port }) => {
    const spellings = [
      ...[
        '/docs/a',
        '/docs/a/',
        '/docs//a',
        '/%64ocs/a',
        '/docs;x=1/a',
        '/docs%2fa',
        '/docs%5Ca',
        '/docs%252fa',
        '//x/docs/a',
      ],
      '/docs/b/..%2Fa',
    ];
    for (const path of spellings) {
      const reply = await send(port, path);
      t.equal(reply.body.toString(), path);
      t.match(reply.headers.ratelimit, /^"docs"/, path);
    }
    for (const path of spellings) t.equal((await send(port, path)).status, 429, path);
    t.equal((await send(port, '/docs/a%3Fb')).status, 200, 'another path');
  });
});

t.test('dot segments are resolved, and bytes beyond ASCII are encoded', async (t) => {
  const upstream = await startUpstream(t, (req, res) => res.end(`<${req.url}>`));
  const { port } = await startTestGateway(t, {
    upstream: upstream.origin,
    policies: policyFile('name: all, route: "* *", identifier: ip, limit: 100, window: 1h'),
  });
  const cases = [
    ['/a/./b/../c/', '/a/c/'],
    ['/caf\xc3\xa9/?q=\xff', '/caf%C3%A9/?q=%FF'],
    ['http://a/b/?x', '/b/?x'],
  ] as const;
  // node:http reads the second kind of request.
  for (const [sent, arrived] of cases)
    for (const more of ['', 'TE: trailers\r\n']) {
      const text = `GET ${sent} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`;
      t.match(await sendRaw(port, text).ended(), `<${arrived}>`, sent);
    }
});

t.test('no spelling buys a second limit for a part of the path', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (_, res) => res.end());
  const policies = policyFile(
    'name: user, route: "GET /users/{id}/*", identifier: path.id, limit: 6, window: 366d',
  );
  await onEachStore(t, { upstream, policies }, async (t, { port }) => {
    const passed = async (count: number, pathOf: (i: number) => string): Promise<number> => {
      let passed = 0;
      for (let i = 0; i < count; i++) if ((await send(port, pathOf(i))).status === 200) passed++;
      return passed;
    };
    // An application in Python reads /users/7/posts, Tomcat too, and a server that decodes twice.
    t.equal(await passed(2, () => '/users/7/posts'), 2);
    const spellings = [
      (i: number) => `/users/7%2Fp${i}`,
      (i: number) => `/users/${i}%2f..%2f7/posts`,
      (i: number) => `/users/x${i}/..;/7/posts`,
      (i: number) => `/users/%25${(0x37).toString(16)}/p${i}`,
    ];
    t.equal(
      await passed(9, (i) => spellings[i % spellings.length]?.(i) ?? ''),
      4,
      'the rest of the limit of 7',
    );
    t.equal(await passed(9, (i) => spellings[i % spellings.length]?.(i + 100) ?? ''), 0);
    t.equal(await passed(8, () => '/users/8/posts'), 6, 'another value has its own');
  });
});

t.test('a value with an encoded slash is one value where only one reading has the route', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (_, res) => res.end());
  const policies = policyFile(
    'name: project, route: "GET /projects/{id}", identifier: path.id, limit: 3, window: 366d',
  );
  await onEachStore(t, { upstream, policies }, async (t, { port }) => {
    const statuses = async (path: string): Promise<number[]> => {
      const all: number[] = [];
      for (let i = 0; i < 4; i++) all.push((await send(port, path)).status);
      return all;
    };
    t.strictSame(await statuses('/projects/group%2Fone'), [200, 200, 200, 429]);
    t.strictSame(
      await statuses('/projects/group%2ftwo'),
      [200, 200, 200, 429],
      'it was proven by its replies',
    );
    t.strictSame(await statuses('/projects%2Fgroup'), [200, 200, 200, 429], 'the value of the other reading');
    t.strictSame(await statuses('/projects/group'), [429, 429, 429, 429]);
  });
});

t.test('a value that depends on the reading is never proven', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (_, res) => res.end());
  const policies = policyFile(
    'name: user, route: "GET /users/{id}/*", identifier: path.id, limit: 4, window: 366d',
  );
  await onEachStore(t, { upstream, policies }, async (t, { port }) => {
    let passed = 0;
    for (let i = 0; i < 12; i++) if ((await send(port, `/users/v${i}/..;/w${i}/x`)).status === 200) passed++;
    t.equal(passed, 4, 'the limit of the address for invented values');
  });
});
