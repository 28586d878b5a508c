import t from 'tap';
import { originAmong, originIn } from '#gateway/http/page-origin.ts';

const APP = 'https://app.example.org';

t.test('finds the origin in a header section', async (t) => {
  t.equal(originIn(['Host', 'a', 'ORIGIN', APP]), APP);
  t.equal(originIn(['Host', 'a', 'X-Origin', APP, 'Origins', APP]), null);
  t.equal(originIn(['origin', APP, 'Origin', APP]), null, 'several');
  t.equal(originIn([]), null);
});

t.test('finds the origin in bytes that are no request', async (t) => {
  const found = (text: string): string | null => originAmong(Buffer.from(text, 'latin1'));
  t.equal(found(`GET / HTTP/1.1\r\nOrigin: ${APP}\r\nX-A: 1`), APP);
  t.equal(found(`GET / HTTP/1.1\r\norigin:\t${APP}  \r\n\r\nbody`), APP);
  t.equal(found(`GET / HTTP/1.1\norigin:${APP}\n`), APP);
  t.equal(found(`GET / HTTP/1.1\r\nOrigin: ${APP}\r\n\r\n`), APP);
  t.equal(found(`GET / HTTP/1.1\r\nX-Origin: ${APP}\r\n\r\n`), null);
  t.equal(found(`GET /?\r\n\r\nOrigin: ${APP}\r\n`), null, 'in the body');
  t.equal(found(`GET / HTTP/1.1\r\nOrigin: ${APP}\r\nOrigin: https://b.test\r\n\r\n`), null);
  t.equal(found(`GET / HTTP/1.1\r\nX-A: ${'a'.repeat(16_000)}`), null);
  t.equal(found(`GET / HTTP/1.1\r\nOrigin:${' '.repeat(65_536)}`), null, 'in linear time');
  t.equal(found(''), null);
});
