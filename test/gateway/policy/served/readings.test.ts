/** What arrives of paths that servers read in several ways. How they are counted is in test/policies/paths.yaml. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

t.test('a path that is read in several ways arrives as it was sent', async (t) => {
  const upstream = await startUpstream(t, (req, res) => res.end(req.url));
  const policies = policyFile('name: docs, route: "GET /docs/a", identifier: ip, limit: 10, window: 366d');
  const { port } = await startTestGateway(t, { upstream, policies });
  const paths = ['/docs/a/', '/docs//a', '/%64ocs/a', '/docs;x=1/a', '/docs%2fa', '/docs%5Ca', '//x/docs/a'];
  for (const path of paths) t.equal((await send(port, path)).body.toString(), path);
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
