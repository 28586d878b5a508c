/** No text of a field can become another field or another request. */
import t from 'tap';
import { headOf } from '#gateway/proxy/request-text.ts';

const request = {
  method: 'GET',
  target: '/',
  headers: [] as string[],
  body: null,
  contentLength: null,
  upgrade: null,
};

t.test('refuses fields and targets that cannot be sent', async (t) => {
  // The last two become CR LF if they are cut to latin1.
  for (const text of [
    'a\r\nX: y',
    'a\nX: y',
    'a\rX: y',
    'a\0',
    '\x7f',
    'a\u010d\u010aX: y',
    'a\u560d\u560aX: y',
  ]) {
    t.equal(headOf({ ...request, headers: ['X-A', text] }), null, JSON.stringify(text));
    t.equal(headOf({ ...request, headers: [text, 'a'] }), null, `name ${JSON.stringify(text)}`);
    t.equal(headOf({ ...request, target: `/${text}` }), null, `target ${JSON.stringify(text)}`);
  }
  t.equal(headOf({ ...request, target: '/a b' }), null);
});

t.test('sends everything else unchanged, with the fields of the connection last', async (t) => {
  const headers = ['Host', 'a.test', 'X-A', 'tab\t\xe9\xff'];
  t.equal(
    headOf({ ...request, headers }),
    'GET / HTTP/1.1\r\nHost: a.test\r\nX-A: tab\t\xe9\xff\r\nConnection: keep-alive\r\n\r\n',
  );
  t.equal(
    headOf({ ...request, headers: ['Host', 'b.test'], upgrade: 'websocket' }),
    'GET / HTTP/1.1\r\nHost: b.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  );
});
