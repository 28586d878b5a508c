import { validateHeaderValue } from 'node:http';
import t from 'tap';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import { UNREAD } from '#gateway/reply/cors.ts';
import { rawReply } from '#gateway/reply/own-reply.ts';
import { ownReply } from '#gateway/reply/refusal-reply.ts';

const AS_JSON = { cors: UNREAD, close: true, decision: null, page: null };

for (const code of Object.keys(CODES) as ErrorCode[]) {
  t.test(`${code}: status, message and details, never the application's code`, async (t) => {
    const { status } = CODES[code];
    const body = JSON.parse(ownReply(code, 'why', AS_JSON).body);
    t.match(body, { status, code, message: 'why', detail: 'why', details: {}, title: String, type: String });
    t.ok(status >= 400 && status !== 500);
    // Widgets lose their answers on 403, so the gateway uses it only if a deny list says so, and never on client
    // routes.
    t.equal(status === 403, code === 'gateway_forbidden');
    t.not(body.code, 'too_many_requests');
  });
}

t.test('as raw text: one header section, the exact length, the extra headers', async (t) => {
  const reply = ownReply('gateway_bad_request', 'nö', AS_JSON, ['X-A', '1']);
  const text = rawReply(reply, Date.UTC(2026, 0, 2, 3, 4, 5)).toString();
  const end = text.indexOf('\r\n\r\n');
  const head = text.slice(0, end).split('\r\n');
  t.equal(head[0], 'HTTP/1.1 400 Bad Request');
  for (const line of [
    'Content-Type: application/problem+json',
    'Date: Fri, 02 Jan 2026 03:04:05 GMT',
    'Cache-Control: no-store',
    'X-A: 1',
    'Connection: close',
    'Access-Control-Allow-Origin: *',
  ])
    t.ok(head.includes(line), line);
  t.ok(head.includes(`Content-Length: ${Buffer.byteLength(text.slice(end + 4))}`));
});

t.test('a body can be put into a header field, whatever its message contains', async (t) => {
  for (let unit = 0; unit <= 0xff; unit++) {
    const message = `a${String.fromCharCode(unit)}b`;
    const { body } = ownReply('gateway_denied', message, AS_JSON);
    t.doesNotThrow(() => validateHeaderValue('x-gateway-body', body), `U+00${unit.toString(16)}`);
    t.equal(JSON.parse(Buffer.from(body, 'latin1').toString()).message, message);
  }
});
