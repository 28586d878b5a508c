/** Counts the requests of each client in each window, in bounded memory. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { Frequencies } from '#gateway/workbench/replay/routes/frequencies.ts';
import { Peaks } from '#gateway/workbench/replay/routes/peaks.ts';

const IP = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
const digester = new Digester('salt');
const client = (name: string) => digester.identify(IP, name);

t.test('reports each window of a client, and its largest one', async (t) => {
  const windows: number[][] = [];
  const peaks = new Peaks({
    windowMs: 60_000,
    onWindow: (route, requests) => void windows.push([route, requests]),
  });
  const add = (route: number, name: string, second: number): void =>
    peaks.add(route, client(name), second * 1000);
  for (const second of [0, 1, 59, 60, 61, 300]) add(7, 'a', second);
  add(7, 'b', 301);
  add(8, 'a', 302);
  t.strictSame(windows, [
    [7, 3],
    [7, 2],
  ]);
  const most: number[][] = [];
  peaks.end((route, requests) => void most.push([route, requests]));
  t.strictSame(most.sort(), [
    [7, 1],
    [7, 3],
    [8, 1],
  ]);
  t.equal(windows.length, 5);
});

t.test('counts a sample of too many clients', async (t) => {
  const peaks = new Peaks({ windowMs: 60_000, onWindow: () => undefined, clientsMax: 512 });
  const clients = 20_000;
  for (let i = 0; i < clients; i++) {
    const identity = client(`client ${i}`);
    for (let n = 0; n <= i % 10; n++) peaks.add(0, identity, 0);
  }
  const most = new Frequencies();
  peaks.end((_, requests) => most.add(requests));
  t.ok(peaks.oneIn >= 32 && peaks.oneIn <= 128, String(peaks.oneIn));
  t.ok(most.total <= 512);
  // Client i makes i % 10 + 1 requests, and the sample is fair.
  const [median = 0] = most.percentiles([0.5]);
  t.ok(median >= 4 && median <= 7, String(median));
  const all = most.total * peaks.oneIn;
  t.ok(all > 0.6 * clients && all < 1.4 * clients, String(all));
});

t.test('returns percentiles', async (t) => {
  const frequencies = new Frequencies();
  t.strictSame(frequencies.percentiles([0.5, 1]), [0, 0]);
  for (let i = 1; i <= 100; i++) frequencies.add(i);
  frequencies.add(123_456);
  t.strictSame(frequencies.percentiles([0.5, 0.95, 0.99]), [51, 96, 100]);
  t.equal(frequencies.max, 123_456);
});
