/** `retryJitter`: Retry-After of a 429 has a random part, and nothing else has. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile } from '#test/support/gateway.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const JITTERED = 'name: late, route: "GET /late", identifier: ip, limit: 1, window: 366d, retryJitter: 5s';
const EXACT = 'name: exact, route: "GET /exact", identifier: ip, limit: 1, window: 366d';
const EACH = [0, 1, 2, 3, 4, 5];

/** Returns how much longer a refusal tells its client to wait than until the end of the window. */
function added(headers: Readonly<Record<string, unknown>>): number {
  const reset = Number(headers['x-ratelimit-reset']);
  if (headers.ratelimit !== undefined)
    t.equal(/;t=(\d+)$/.exec(String(headers.ratelimit))?.[1], String(reset), 'all limit headers are exact');
  return Number(headers['retry-after']) - reset;
}

const sorted = (numbers: Iterable<number>): number[] => [...new Set(numbers)].sort((a, b) => a - b);

t.test('each refusal has its own wait, and exact limit headers', async (t) => {
  await insideLongWindow();
  await onEachStore(t, { policies: policyFile(JITTERED, EXACT) }, async (t, one, two) => {
    const ask = async (i: number, path: string, headers = {}) =>
      send((i % 2 === 0 ? one : two).port, path, { headers });
    const denied = async (path: string) => {
      await ask(0, path);
      const answers = await Promise.all(Array.from({ length: 120 }, (_, i) => ask(i, path)));
      t.ok(answers.every(({ status }) => status === 429));
      return answers.map(({ headers }) => added(headers));
    };
    t.strictSame(sorted(await denied('/late')), EACH);
    t.strictSame(sorted(await denied('/exact')), [0], 'off by default');

    const waits: number[] = [];
    for (let i = 0; i < 60; i++) {
      const { headers, body } = await ask(i, '/late', { accept: 'text/html' });
      waits.push(added(headers));
      const shown = /datetime="PT(\d+)S"/.exec(body.toString())?.[1];
      t.equal(shown, headers['retry-after'], 'the page counts down the same number');
    }
    t.strictSame(sorted(waits), EACH);
  });
});
