/** Django with its usual middleware: a slash at the end, CSRF tokens, sessions. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour, type Way } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
writeFileSync(
  join(folder, 'app.py'),
  `import sys
from django.conf import settings
settings.configure(
    ALLOWED_HOSTS=['127.0.0.1'], SECRET_KEY='of the test', ROOT_URLCONF=__name__, USE_X_FORWARDED_HOST=False,
    SESSION_ENGINE='django.contrib.sessions.backends.signed_cookies',
    MIDDLEWARE=['django.middleware.security.SecurityMiddleware',
        'django.contrib.sessions.middleware.SessionMiddleware', 'django.middleware.http.ConditionalGetMiddleware',
        'django.middleware.common.CommonMiddleware', 'django.middleware.csrf.CsrfViewMiddleware'])
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.urls import path

def page(request, rest=''):
    return JsonResponse({'path': request.path, 'full': request.get_full_path()}, headers={'X-Address': request.build_absolute_uri()})

def form(request):
    if request.method == 'POST':
        request.session['visits'] = request.session.get('visits', 0) + 1
        return redirect('/done/')
    return HttpResponse(get_token(request))

def done(request):
    return HttpResponse('visits: %s' % request.session.get('visits'))

def stream(request):
    return StreamingHttpResponse('line %d\\n' % i for i in range(1000))

urlpatterns = [path('items/', page), path('files/<path:rest>', page), path('form/', form), path('done/', done),
    path('stream/', stream)]

if __name__ == '__main__':
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
`,
);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['/usr/bin/python3', 'app.py', 'runserver', '--noreload', `127.0.0.1:${port}`],
});

t.test('an address without its slash', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/items?page=2'));
  t.match(replies, [{ status: 301 }, { status: 200, body: '"full": "/items/?page=2"' }]);
});

t.test('paths arrive as they were sent', async (t) => {
  for (const path of [
    '/files/a/b/',
    '/files/a%2Fb',
    '/files/50%25de',
    '/files/a//b',
    '/files/a;v=1/b',
    '/files/G%C3%BCnter',
  ])
    t.equal((await neighbour.same(t, path, (way) => ask(way, path))).status, 200);
});

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
