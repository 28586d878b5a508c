import t from 'tap';
import { startApi } from '#test/support/api-app.ts';

t.test('200: a PNG of 800 by 400, which may be cached and used by other origins', async (t) => {
  const api = await startApi(t);
  for (const query of ['', '?name=Survey&brandColor=%23e11d48', `?name=${'W'.repeat(8_000)}`]) {
    const { headers, rawPayload, statusCode } = await api.app.inject(`/api/v1/client/og${query}`);
    t.equal(statusCode, 200);
    t.equal(rawPayload.toString('hex', 0, 8), '89504e470d0a1a0a');
    t.strictSame([rawPayload.readUInt32BE(16), rawPayload.readUInt32BE(20)], [800, 400]);
    t.equal(rawPayload.toString('latin1', rawPayload.length - 8, rawPayload.length - 4), 'IEND');
    t.match(headers, {
      'content-type': 'image/png',
      'cache-control': 'public, s-maxage=600, max-age=1800, stale-while-revalidate=600, stale-if-error=600',
      'access-control-allow-origin': '*',
    });
  }
});
