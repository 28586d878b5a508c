/** Django with its usual middleware: a slash at the end, CSRF tokens, sessions. */
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, startNeighbour, type Way } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
copyProgram('django.py', join(folder, 'app.py'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['/usr/bin/python3', 'app.py', 'runserver', '--noreload', `127.0.0.1:${port}`],
});

askForPage(t, neighbour, 'Django');

t.test('a form with its token, and the session', async (t) => {
  const { status, body } = await neighbour.same(t, 'the form is sent', async (way) => {
    const { cookies, token } = await open(way);
    const headers = {
      cookie: cookies,
      origin: way.origin,
      'content-type': 'application/x-www-form-urlencoded',
    };
    const sent = await ask(way, '/form/', { method: 'POST', headers, body: `csrfmiddlewaretoken=${token}` });
    const session = cookiesOf(sent);
    const done = await ask(way, String(sent.headers.location), { headers: { cookie: session } });
    return { status: sent.status, body: done.body };
  });
  t.strictSame([status, body], [302, 'visits: 1']);
  const refused = { method: 'POST', headers: { origin: 'http://other.example' }, body: '' };
  t.equal(
    await neighbour.same(t, 'without a token', async (way) => (await ask(way, '/form/', refused)).status),
    403,
  );
});

t.test('a stream without a length, and a conditional request', async (t) => {
  const { headers, body } = await neighbour.same(t, 'the stream', (way) => ask(way, '/stream/'));
  t.equal(body.split('\n').length, 1001);
  t.equal(headers.etag, undefined);
  const {
    headers: { etag },
  } = await ask(neighbour.ways[0], '/done/');
  const again = { headers: { 'if-none-match': String(etag) } };
  t.equal((await neighbour.same(t, 'not modified', (way) => ask(way, '/done/', again))).status, 304);
});

async function open(way: Way): Promise<{ cookies: string; token: string }> {
  const reply = await ask(way, '/form/');
  return { cookies: cookiesOf(reply), token: reply.body };
}

function cookiesOf({ headers }: Awaited<ReturnType<typeof ask>>): string {
  return [headers['set-cookie'] ?? []]
    .flat()
    .map((cookie) => cookie.split(';')[0])
    .join('; ');
}
