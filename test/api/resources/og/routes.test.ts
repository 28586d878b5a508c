import { inflateSync } from 'node:zlib';
import t from 'tap';
import { drawing, readColor, readName } from '#api/resources/og/drawing.ts';
import { createImages } from '#api/resources/og/images.ts';
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

async function image(query: string): Promise<Png> {
  const reply = await api.app.inject({ method: 'GET', url: `/api/v1/client/og${query}` });
  t.equal(reply.statusCode, 200);
  t.equal(reply.headers['content-type'], 'image/png');
  return readPng(reply.rawPayload);
}

t.test('200: a PNG of 800 by 400, which may be cached and used by other origins', async (t) => {
  const { height, width, rows } = await image('?name=Survey&brandColor=%23e11d48');
  t.strictSame([width, height], [800, 400]);
  t.equal(rows.length % 400, 0, 'every row is complete');
  const { headers } = await api.client('GET', '/api/v1/client/og?name=Survey');
  t.equal(
    headers['cache-control'],
    'public, s-maxage=600, max-age=1800, stale-while-revalidate=600, stale-if-error=600',
  );
  t.equal(headers['access-control-allow-origin'], '*');
});

t.test('name and colour change the picture, the spelling of a colour does not', async (t) => {
  const [plain, named, coloured] = [
    await image(''),
    await image('?name=Checkout'),
    await image('?name=Checkout&brandColor=%23e11d48'),
  ];
  t.notSame(plain.rows, named.rows);
  t.notSame(named.rows, coloured.rows);
  for (const spelling of ['%2523e11d48', 'E11D48', '%23E11D48']) {
    t.same((await image(`?name=Checkout&brandColor=${spelling}`)).rows, coloured.rows, spelling);
  }
  t.same(
    (await image('?name=Checkout&brandColor=url(%23x)')).rows,
    named.rows,
    'an invalid colour gives the default one',
  );
});

t.test('draws hostile names as text', async (t) => {
  const names = [
    '</text><rect width="800" height="400"/>',
    '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>&a;',
    '\x01\uFFFF\u{1F600}\uD800 日本語',
    'W'.repeat(8_000),
    ' '.repeat(500),
  ];
  for (const name of names) {
    const { width } = await image(`?name=${encodeURIComponent(name.toWellFormed())}`);
    t.equal(width, 800);
  }
  const svg = drawing(readName(names[0] ?? ''), readColor('"/>'));
  t.equal(svg.match(/<rect/g)?.length, drawing('', readColor('')).match(/<rect/g)?.length);
  t.notMatch(drawing(readName(names[1] ?? ''), '#000'), /ENTITY a SYSTEM "|<!/);
});

t.test('a long name gets smaller type, then an ellipsis, and at most four lines', (t) => {
  const linesOf = (name: string): readonly string[] => drawing(readName(name), '#000').match(/<text /g) ?? [];
  t.equal(linesOf('Short').length, 1);
  t.equal(linesOf('word '.repeat(12)).length, 3);
  const long = drawing(readName('word '.repeat(300)), '#000');
  t.equal(long.match(/<text /g)?.length, 4);
  t.match(long, '…</text></g>');
  t.end();
});

t.test('draws two at a time, equal ones once, with a bounded queue', async (t) => {
  let running = 0;
  let most = 0;
  let made = 0;
  const release: (() => void)[] = [];
  const images = createImages(async () => {
    running += 1;
    made += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => release.push(resolve));
    running -= 1;
    return Buffer.from('png');
  });
  const asked = Array.from({ length: 102 }, (_, i) => images.png(`image ${i}`));
  const same = images.png('image 101');
  await t.rejects(images.png('one more'), { code: 'too_many_requests', retryAfterSeconds: 1 });
  while (made < 102 || release.length > 0) {
    release.shift()?.();
    await new Promise(setImmediate);
  }
  await Promise.all([...asked, same]);
  t.equal(most, 2);
  t.equal(made, 102);

  const failing = createImages(async () => {
    made += 1;
    throw new Error('no picture');
  });
  await t.rejects(failing.png('a'), { message: 'no picture' });
  await t.rejects(failing.png('a'), { message: 'no picture' });
  t.equal(made, 104, 'a failure is not cached');
});

t.test('405: an image can only be read', async (t) => {
  t.equal((await api.client('POST', '/api/v1/client/og')).status, 405);
});
