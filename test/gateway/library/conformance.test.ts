/** The library makes the same decisions as the gateway, in every framework. */
import t from 'tap';
import { policyFile } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';
import { HOSTS, type HostOptions, held } from './hosts.ts';

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Headers that the gateway adds to replies of the application. */
const TOLD =
  /^(x-ratelimit-.*|ratelimit(-policy)?|retry-after|x-gateway-.*|cache-control|access-control-.*)$/;

async function ask(origin: string, line: string): Promise<Told> {
  const [method = 'GET', path = '/', ...fields] = line.split(' ');
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: Object.fromEntries(fields.map((field) => field.split('=') as [string, string])),
    ...(method === 'POST' ? { body: 'x'.repeat(2000) } : {}),
  });
  const headers: Record<string, string> = {};
  for (const [name, value] of response.headers)
    if (TOLD.test(name)) headers[name] = name === 'x-gateway-decision' ? 'ID' : value;
  const text = (await response.text()).replace(/"decision":"[^"]*"/, '"decision":"ID"');
  // The application writes the body of an admitted request.
  return { status: response.status, headers, body: response.ok || text === '' ? '' : JSON.parse(text) };
}

const times = (count: number, line: string): string[] => Array(count).fill(line);

const SCENARIOS: Record<string, { readonly rows: readonly string[]; readonly lines: readonly string[] }> = {
  'a window, and what is over it': {
    rows: ['name: items, route: GET /items/*, identifier: ip, limit: 3, window: 1m'],
    lines: [...times(5, 'GET /items/1'), 'GET /other', 'HEAD /items/2'],
  },
  'several policies, all or nothing': {
    rows: [
      'name: all, route: GET /*, identifier: ip, limit: 4, window: 1m',
      'name: few, route: GET /few, identifier: ip, limit: 1, window: 1h',
    ],
    lines: [...times(3, 'GET /few'), ...times(4, 'GET /a')],
  },
  'other spellings of one path': {
    rows: ['name: items, route: GET /items, identifier: ip, limit: 2, window: 1m'],
    lines: ['GET /items?x=1', 'GET /items/', 'GET /%69tems', 'GET /a%00b', 'GET /%2569tems'],
  },
  'a key, and two that differ': {
    rows: ['name: keyed, route: GET /*, identifier: api-key, limit: 2, window: 1m'],
    lines: [
      ...times(3, 'GET /a x-api-key=fbk_1'),
      'GET /a x-api-key=fbk_2',
      'GET /a',
      'GET /a x-api-key=fbk_1 authorization=Bearer%20fbk_9'.replace('%20', '\u00a0'),
    ],
  },
  'a key that works has a budget of its own': {
    rows: ['name: keyed, route: GET /*, identifier: api-key, limit: 2, window: 1m'],
    lines: [
      ...times(2, 'GET /status-401 x-api-key=fbk_1'),
      ...times(2, 'GET /status-200 x-api-key=fbk_2'),
      'GET /status-200 x-api-key=fbk_1',
    ],
  },
  'failures only': {
    rows: ['name: tries, route: POST /*, identifier: ip, limit: 2, window: 1m, count: failure'],
    lines: [...times(3, 'POST /status-200'), ...times(3, 'POST /status-401'), 'POST /status-200'],
  },
  'units that replies report': {
    rows: [
      'name: units, route: GET /*, identifier: ip, limit: 500, window: 1m, cost: { replyHeader: X-Units, reserve: 100 }',
    ],
    lines: [
      ...times(2, 'GET /units-0'),
      ...times(2, 'GET /units-150'),
      'GET /units-none',
      'GET /units-300',
      'GET /a',
    ],
  },
  'bytes of bodies': {
    rows: ['name: bytes, route: POST /*, identifier: ip, limit: 5000, window: 1m, cost: body-bytes'],
    lines: times(4, 'POST /a'),
  },
  'sliding windows and token buckets': {
    rows: [
      'name: slide, route: GET /slide, identifier: ip, limit: 2, window: 1m, algorithm: sliding-window',
      'name: bucket, route: GET /bucket, identifier: ip, limit: 60, window: 1m, algorithm: token-bucket, burst: 2',
    ],
    lines: [...times(3, 'GET /slide'), ...times(3, 'GET /bucket')],
  },
  'denials on client routes carry CORS, and replies of the application expose the limit headers': {
    rows: ['name: client, route: GET /api/v1/client/*, identifier: ip, limit: 1, window: 1m'],
    lines: times(2, 'GET /api/v1/client/x'),
  },
};

for (const [name, { rows, lines }] of Object.entries(SCENARIOS)) {
  t.test(name, async (t) => {
    // The clock is stopped in the middle of a window.
    const options: HostOptions = { policies: policyFile(...rows), clock: () => 1_800_000_030_000 };
    const told = new Map<string, Told[]>();
    for (const [host, start] of Object.entries(HOSTS)) {
      const { origin } = await start(t, options);
      const answers: Told[] = [];
      for (const line of lines) answers.push(await ask(origin, line));
      told.set(host, answers);
    }
    const [[, expected = []] = [], ...others] = told;
    t.ok(
      expected.some(({ status }) => status === 429),
      'at least one request is denied',
    );
    for (const [host, answers] of others)
      for (const [i, answer] of answers.entries()) t.strictSame(answer, expected[i], `${host}: ${lines[i]}`);
  });
}

t.test('requests in flight count until their reply is sent', async (t) => {
  const policies = policyFile('name: slow, route: GET /slow, identifier: ip, concurrency: 2');
  for (const [host, start] of Object.entries(HOSTS)) {
    const { origin } = await start(t, { policies });
    const statuses = async (): Promise<number[]> => {
      const answered: number[] = [];
      const asked = times(5, 'GET /slow').map(async (line) => {
        answered.push((await ask(origin, line)).status);
      });
      await until(() => answered.length + held.size === asked.length, 'all are denied or held');
      for (const finish of held) finish();
      held.clear();
      await Promise.all(asked);
      return answered;
    };
    t.strictSame((await statuses()).sort(), [200, 200, 429, 429, 429], host);
    t.strictSame((await statuses()).sort(), [200, 200, 429, 429, 429], `${host}: the places are free again`);
  }
});
