import { inflateSync } from 'node:zlib';
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';

const api = await startApi(t);

interface Png {
  readonly width: number;
  readonly height: number;
  /** Returns the filtered rows, inflated. They are equal if the pixels are. */
  readonly rows: Buffer;
}

/** Reads signature, header and data of a PNG, and checks that nothing is missing at its end. */
function readPng(bytes: Buffer): Png {
  t.equal(bytes.subarray(0, 8).toString('hex'), '89504e470d0a1a0a');
  const data: Buffer[] = [];
  let end = 8;
  let last = '';
  while (end < bytes.length) {
    const length = bytes.readUInt32BE(end);
    last = bytes.toString('latin1', end + 4, end + 8);
    if (last === 'IDAT') data.push(bytes.subarray(end + 8, end + 8 + length));
    end += length + 12;
  }
  t.equal(last, 'IEND');
  return {
    width: bytes.readUInt32BE(16),
    height: bytes.readUInt32BE(20),
    rows: inflateSync(Buffer.concat(data)),
  };
}

t.test('200: a PNG of 800 by 400, which may be cached and used by other origins', async (t) => {
  const names = ['', '?name=Survey&brandColor=%23e11d48', `?name=${'W'.repeat(8_000)}`];
  for (const query of names) {
    const reply = await api.app.inject({ method: 'GET', url: `/api/v1/client/og${query}` });
    t.equal(reply.statusCode, 200);
    t.equal(reply.headers['content-type'], 'image/png');
    const { height, width, rows } = readPng(reply.rawPayload);
    t.strictSame([width, height], [800, 400]);
    t.equal(rows.length % 400, 0, 'every row is complete');
  }
  const { headers } = await api.client('GET', '/api/v1/client/og?name=Survey');
  t.equal(
    headers['cache-control'],
    'public, s-maxage=600, max-age=1800, stale-while-revalidate=600, stale-if-error=600',
  );
  t.equal(headers['access-control-allow-origin'], '*');
});
