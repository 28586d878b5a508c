/** Tests the times of JSON logs in each unit and notation that the proxies can write. */
import t from 'tap';
import { detectReader } from '#gateway/workbench/replay/formats/formats.ts';

const AT = Date.parse('2026-10-30T22:40:00.123Z');

const LINES: Readonly<Record<string, (time: unknown) => object>> = {
  caddy: (ts) => ({ ts, request: { remote_ip: '192.0.2.1', method: 'GET', uri: '/a' } }),
  traefik: (StartUTC) => ({ StartUTC, ClientHost: '192.0.2.1', RequestMethod: 'GET', RequestPath: '/a' }),
  envoy: (time) => ({
    start_time: time,
    downstream_remote_address: '192.0.2.1:1',
    method: 'GET',
    path: '/a',
  }),
  floodgate: (time) => ({ time, method: 'GET', path: '/a', status: 200, decision: 'allow', identities: {} }),
};

function timeOf(format: string, time: unknown): number | null {
  const known = JSON.stringify(LINES[format]?.('2026-10-30T22:40:00.123Z'));
  const reader = detectReader([known], new Map());
  t.equal(reader?.format, format);
  // JSON.stringify cannot write the whole numbers of nanoseconds.
  const line = JSON.stringify(LINES[format]?.('TIME')).replace(
    '"TIME"',
    typeof time === 'string' ? JSON.stringify(time) : String(time),
  );
  return reader?.read(line)?.at ?? null;
}

t.test('numbers are seconds, milliseconds, microseconds or nanoseconds by their size', async (t) => {
  for (const format of Object.keys(LINES))
    for (const time of ['1793400000.123', '1793400000123.456', '1793400000123456', 1793400000123456789n])
      for (const written of typeof time === 'string' ? [time, Number(time)] : [time])
        t.equal(timeOf(format, written), AT, `${format} ${written}`);
});

t.test('texts are ISO 8601, the time of Caddy’s console, or that of common logs', async (t) => {
  for (const format of Object.keys(LINES))
    for (const [text, at] of [
      ['2026-10-30T22:40:00.123Z', AT],
      ['2026-10-30T23:40:00.123+01:00', AT],
      ['2026-10-30T23:40:00.123+0100', AT],
      ['2026-10-30T22:40:00.123456789Z', AT],
      ['2026/10/30 22:40:00.123', AT],
      ['2026/10/30 22:40:00.123456789', AT],
      ['2026/10/30 22:40:00', AT - 123],
      ['30/Oct/2026:23:40:00 +0100', AT - 123],
    ] as const)
      t.equal(timeOf(format, text), at, `${format} ${text}`);
});

t.test('other texts and impossible times are unreadable', async (t) => {
  for (const format of Object.keys(LINES))
    for (const time of ['yesterday', 'Oct 30', '', '1', 0, -5, 1e300, '2026-13-45T99:99:99Z', 'null'])
      t.equal(timeOf(format, time), null, `${format} ${time}`);
});

t.test('a duration in nanoseconds is not read as seconds', async (t) => {
  const line = (duration: unknown): string =>
    JSON.stringify({ ...LINES.caddy?.(1_793_400_000.123), duration });
  const read = (duration: unknown) => detectReader([line(0.5)], new Map())?.read(line(duration));
  t.match(read(0.25), { at: AT - 250 });
  t.match(read(10), { at: AT - 10_000 });
  t.match(read(250_000_000), { at: AT - 250 });
  t.match(read('250ms'), { at: AT });
});
