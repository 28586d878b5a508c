/** The cases of redirects.md, and paths that look like another host. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { applicationAddress, keepRedirect } from '#gateway/proxy/redirect.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { KINDS, type Kind } from '#test/support/kinds.ts';
import { send, startRawUpstream } from './exchange.ts';

const FILE = join(import.meta.dirname, 'redirects.md');

/** Starts an application that sends `Location: …`. @returns what a client gets */
async function redirecting(
  t: Test,
  kind: Kind = 'http',
): Promise<(host: string, status: string, location: string) => Promise<string>> {
  let reply = '';
  const upstream = await startRawUpstream(t, (socket) => socket.write(reply, 'latin1'), kind);
  const { port } = await startTestGateway(t, { upstream });
  const other = kind === 'http' ? 'https' : 'http';
  const meant = (text: string): string =>
    text.replaceAll('PORT', String(upstream.port)).replace('KIND', kind).replace('OTHER', other);
  return async (host, status, location) => {
    reply = `HTTP/1.1 ${status} x\r\nLOCATION: ${meant(location)}\r\nContent-Length: 0\r\n\r\n`;
    const { headers } = await send(port, '/', { headers: { host: meant(host) } });
    return (headers.location ?? '')
      .replaceAll(String(upstream.port), 'PORT')
      .replace(/^\w+(?=:\/\/)/, (found) => (found === kind ? 'KIND' : 'OTHER'));
  };
}

for (const kind of KINDS)
  t.test(`${kind}: an address of the application becomes a path, and others stay`, async (t) => {
    const locationOf = await redirecting(t, kind);
    for (const heading of ['An address of the application becomes a path', 'All other addresses stay'])
      for (const [host = '', status = '', location = '', expected] of casesUnder(FILE, heading))
        t.equal(await locationOf(host, status, location), expected, location);
    t.equal(await locationOf('a', '302', `${kind.toUpperCase()}://a:PORT`), '/', 'in capital letters');
  });

t.test('an address may name the usual port of its protocol', async (t) => {
  for (const [origin = '', location = '', wanted] of casesUnder(
    FILE,
    'An address may name the usual port of its protocol',
  )) {
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
    const location = await locationOf('example.org', '302', `http://example.org:PORT${rest}`);
    t.equal(new URL(location, 'http://example.org/').host, 'example.org', `${rest}: ${location}`);
    t.equal(new URL(location, 'http://example.org/').pathname, new URL(`http://example.org${rest}`).pathname);
  }
});
