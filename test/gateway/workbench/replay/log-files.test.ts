/** Tests log files of any size and kind, several at once, and unreadable lines. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { FormatName } from '#gateway/workbench/replay/formats/formats.ts';
import { LogFiles } from '#gateway/workbench/replay/log-files.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const BEGIN = Date.UTC(2026, 10, 22, 8);

/** A line of NGINX, this many seconds after the beginning. */
function line(second: number, path = `/${second}`): string {
  const time = new Date(BEGIN + second * 1000).toISOString();
  return `192.0.2.1 - - [22/Nov/2026:${time.slice(11, 19)} +0000] "GET ${path} HTTP/1.1" 200 1`;
}

/** A line of the gateway. */
function own(ms: number, path: string): string {
  return JSON.stringify({
    time: new Date(BEGIN + ms).toISOString(),
    method: 'GET',
    path,
    status: 200,
    decision: 'allow',
    identities: {},
  });
}

function save(t: Test, files: Readonly<Record<string, string | Buffer>>): (name: string) => string {
  const folder = temporaryFolder(t);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return (name) => join(folder, name);
}

async function read(inputs: readonly (string | Readable)[], format: FormatName | null = null) {
  const files = inputs.map((input) => ({
    name: typeof input === 'string' ? input : 'standard input',
    input,
  }));
  const logs = new LogFiles(files, format, new Map());
  const targets: string[] = [];
  const times: number[] = [];
  await logs.each((request, at) => {
    targets.push(request.target);
    times.push(at - BEGIN);
  });
  return { targets, times, late: logs.late, logs };
}

t.test('plain files, gzip of several members, and standard input have the same requests', async (t) => {
  const lines = Array.from({ length: 50 }, (_, i) => line(i));
  const text = `${lines.join('\n')}\n`;
  const half = text.indexOf('\n', 1000) + 1;
  const compressed = Buffer.concat([gzipSync(text.slice(0, half)), gzipSync(text.slice(half))]);
  const path = save(t, {
    plain: text,
    crlf: text.replaceAll('\n', '\r\n'),
    compressed,
    open: text.trimEnd(),
  });
  const expected = lines.map((_, i) => `/${i}`);
  for (const name of ['plain', 'crlf', 'compressed', 'open'])
    t.strictSame((await read([path(name)])).targets, expected, name);
  const pieces = Readable.from([
    compressed.subarray(0, 1),
    compressed.subarray(1, 100),
    compressed.subarray(100),
  ]);
  t.strictSame((await read([Readable.from([text]).map((part) => Buffer.from(part))])).targets, expected);
  t.strictSame((await read([pieces])).targets, expected, 'from a stream in pieces');
});

t.test('sorts rotated parts in any order, and logs of two machines', async (t) => {
  const part = (from: number, to: number, step = 1): string => {
    const lines: string[] = [];
    for (let i = from; i < to; i += step) lines.push(line(i));
    return `${lines.join('\n')}\n`;
  };
  const path = save(t, {
    'access.log': part(200, 300),
    'access.log.1': part(100, 200),
    'access.log.2.gz': gzipSync(part(0, 100)),
    odd: part(1, 300, 2),
    even: part(0, 300, 2),
  });
  const expected = Array.from({ length: 300 }, (_, i) => `/${i}`);
  const rotated = await read(['access.log', 'access.log.1', 'access.log.2.gz'].map(path));
  t.strictSame(rotated.targets, expected);
  t.equal(rotated.late, 0);
  t.strictSame((await read(['odd', 'even'].map(path))).targets, expected);
});

t.test('lines of several workers are sorted by arrival', async (t) => {
  const path = save(t, {
    log: [
      own(50, '/b'),
      own(10, '/a'),
      own(50, '/c'),
      own(70_000, '/e'),
      own(69_999, '/d'),
      own(200_000, '/g'),
      own(100, '/late'),
    ].join('\n'),
  });
  const { targets, times, late } = await read([path('log')]);
  t.strictSame(targets, ['/a', '/b', '/c', '/late', '/d', '/e', '/g']);
  t.equal(late, 0);
  t.strictSame(
    [...times].sort((a, b) => a - b),
    times,
    'times are in order',
  );
});

t.test('counts a line as late that is more out of order than the buffer can hold', async (t) => {
  const many = 140_000;
  const lines = Array.from({ length: many }, (_, i) => own(i, `/${i}`));
  const path = save(t, { log: [...lines, own(0, '/late'), own(many - 1, '/in time')].join('\n') });
  const { targets, times, late } = await read([path('log')]);
  t.equal(targets.length, many + 2);
  t.equal(late, 1);
  t.equal(targets[times.lastIndexOf(73_727)], '/late', 'counted at the time of the lines read last');
  t.equal(targets.at(-1), '/in time');
});

t.test('malformed and overlong lines are counted, and the first is shown', async (t) => {
  const long = `{"time":"${'x'.repeat(3_000_000)}`;
  const text = [line(0), 'nonsense', '', long, line(1), line(2, `/${'y'.repeat(70_000)}`), line(3)].join(
    '\n',
  );
  const path = save(t, { log: `\ufeff${text}` });
  const { targets, logs } = await read([path('log')]);
  t.strictSame(targets, ['/0', '/1', '/3']);
  t.match(logs, { lines: 6, unreadable: 3 });
  t.strictSame(
    logs.samples.map(({ line, text }) => [line, text.slice(0, 12)]),
    [
      [2, 'nonsense'],
      [4, '{"time":"xxx'],
      [6, '192.0.2.1 - '],
    ],
  );
  t.ok(logs.samples.every(({ text }) => text.length <= 120));
});

t.test('compressed data that ends too early is read as far as possible', async (t) => {
  const lines = Array.from({ length: 20_000 }, (_, i) =>
    line(i % 3600, `/${i}-${Math.imul(i, 2_654_435_761) >>> 0}`),
  );
  const whole = gzipSync(lines.join('\n'));
  const path = save(t, { log: whole.subarray(0, whole.length / 2) });
  const { targets, logs } = await read([path('log')]);
  t.ok(targets.length > 5000 && targets.length < 15_000, String(targets.length));
  t.match(logs.cutShort, [/log: the compressed data is damaged/]);
});

t.test('reads empty files, and refuses unknown formats and missing files', async (t) => {
  const path = save(t, { empty: '', blank: '\n\n', strange: 'a b c\nd e f\n' });
  t.strictSame((await read([path('empty'), path('blank')])).targets, []);
  await t.rejects(read([path('strange')]), /first lines are no access log.*a b c/);
  await t.rejects(read([path('none')]), { code: 'ENOENT' });
  const forced = await read([path('strange')], 'nginx');
  t.match(forced.logs, { lines: 2, unreadable: 2 });
});
