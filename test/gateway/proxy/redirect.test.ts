/** Redirects of an application that names its own address do not lead clients past the gateway. */
import t, { type Test } from 'tap';
import { applicationAddress, keepRedirect } from '#gateway/proxy/redirect.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { KINDS, type Kind } from '#test/support/kinds.ts';
import { send, startRawUpstream } from './exchange.ts';

/** Starts an application that sends `Location: …`, with its port in place of PORT. @returns what a client gets */
async function redirecting(
  t: Test,
  kind: Kind = 'http',
): Promise<(status: string, location: string, host?: string) => Promise<string | undefined>> {
  let reply = '';
  const upstream = await startRawUpstream(t, (socket) => socket.write(reply, 'latin1'), kind);
  const { port } = await startTestGateway(t, { upstream });
  const withPort = (text: string): string => text.replaceAll('PORT', String(upstream.port));
  return async (status, location, host = 'example.org') => {
    reply = `HTTP/1.1 ${status}\r\nLOCATION: ${withPort(location)}\r\nContent-Length: 0\r\n\r\n`;
    const { headers } = await send(port, '/', { headers: { host: withPort(host) } });
    return headers.location?.replaceAll(String(upstream.port), 'PORT');
  };
}

for (const kind of KINDS) {
  t.test(`${kind}: an address of the application becomes a path`, async (t) => {
    const locationOf = await redirecting(t, kind);
    for (const [location, wanted, host] of [
      [`${kind}://example.org:PORT/docs/?a=1#b`, '/docs/?a=1#b'],
      [`${kind}://example.org:PORT/docs/`, '/docs/', 'example.org:8443'],
      [`${kind}://EXAMPLE.org:PORT/docs/`, '/docs/', 'Example.ORG'],
      [`${kind}://[::1]:PORT/`, '/', '[::1]:8080'],
      [`${kind.toUpperCase()}://example.org:PORT`, '/'],
      [`${kind}://example.org:PORT?a=1`, '/?a=1'],
      [`${kind}://127.0.0.1:PORT/docs/`, '/docs/'],
      // Without a protocol it is that of the page.
      ['//example.org:PORT/docs/', '/docs/'],
      ['//127.0.0.1:PORT', '/'],
    ] as const)
      t.equal(await locationOf('301 Moved Permanently', location, host), wanted, location);
    t.equal(await locationOf('201 Created', `${kind}://example.org:PORT/1`), '/1');
  });
}

t.test('an address may name the usual port of its protocol', async (t) => {
  for (const [origin, location, wanted] of [
    ['http://app.internal', 'http://app.internal:80/a', '/a'],
    ['http://app.internal', '//app.internal:80/a', '/a'],
    ['https://app.internal', 'https://app.internal:443/a', '/a'],
    ['http://app.internal', 'http://app.internal:443/a', 'http://app.internal:443/a'],
    ['http://app.internal', 'http://example.org:80/a', 'http://example.org:80/a'],
    ['http://app.internal:8080', 'http://app.internal:80/a', 'http://app.internal:80/a'],
  ] as const) {
    const headers = ['Location', location];
    keepRedirect(302, headers, ['Host', 'example.org'], applicationAddress(origin));
    t.strictSame(headers, ['Location', wanted], `${origin} sends ${location}`);
  }
});

t.test('the path is never taken for another host', async (t) => {
  const locationOf = await redirecting(t);
  for (const rest of [
    '//evil.example/',
    '/\\evil.example/',
    '/\t/evil.example/',
    '\\evil.example',
    '//',
    '/.//a',
  ]) {
    const location = (await locationOf('302 Found', `http://example.org:PORT${rest}`)) ?? '';
    t.equal(new URL(location, 'http://example.org/').host, 'example.org', `${rest}: ${location}`);
    t.equal(new URL(location, 'http://example.org/').pathname, new URL(`http://example.org${rest}`).pathname);
  }
});

t.test('all other addresses stay', async (t) => {
  const locationOf = await redirecting(t);
  for (const [location, host] of [
    ['/docs/'],
    ['docs/'],
    ['//other.example:PORT/'],
    ['//example.org/docs/'],
    ['///127.0.0.1:PORT/'],
    ['http://example.org/docs/'],
    ['https://example.org:PORT/docs/'],
    ['http://example.org:1/docs/'],
    ['http://other.example:PORT/'],
    ['http://example.org.other.example:PORT/'],
    ['http://example.org:PORT@other.example/'],
    // The client came by this port, so it is the gateway's too.
    ['http://example.org:PORT/docs/', 'example.org:PORT'],
    [''],
  ] as const)
    t.equal(await locationOf('302 Found', location, host), location, location);
  t.equal(await locationOf('200 OK', 'http://example.org:PORT/'), 'http://example.org:PORT/', 'no redirect');
});
