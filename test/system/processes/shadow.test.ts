/**
 * An operator puts a policy in shadow mode for a while: in memory, over Redis with several workers, and across a
 * restart.
 */
import { writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { eventually } from '#test/support/gateway-process.ts';
import { type Operator, startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
policies:
  - { name: items, route: "GET /items", identifier: ip, limit: 2, window: 366d, bucket: both }
  - { name: things, route: "GET /things", identifier: ip, limit: 2, window: 366d, bucket: both }
  - { name: others, route: "GET /others", identifier: ip, limit: 1, window: 366d }
`;

const STORES: Record<string, (t: Test) => Promise<Record<string, string>>> = {
  memory: async () => ({}),
  'Redis, two workers': async (t) => ({ GATEWAY_REDIS_URL: (await startRedis(t)).url, GATEWAY_WORKERS: '2' }),
};

type Document = Record<string, unknown>;

function asker({ admin }: Operator) {
  return async (path: string, body?: object): Promise<{ status: number; document: Document }> => {
    const reply = await fetch(
      admin + path,
      body === undefined
        ? {}
        : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
    );
    return { status: reply.status, document: (await reply.json()) as Document };
  };
}

for (const [name, environment] of Object.entries(STORES)) {
  t.test(name, async (t) => {
    const operator = await startOperator(t, await environment(t), POLICIES);
    const ask = asker(operator);
    const statuses = async (path = '/items') => new Set(await operator.send(6, path));
    const all = (status: number) => (seen: Set<number>) => seen.size === 1 && seen.has(status);
    await operator.send(2);
    await eventually('exhausted', statuses, all(429));

    t.match(await ask('/api/shadow', { policy: 'nowhere', seconds: 60 }), { status: 404 });
    t.match(await ask('/api/shadow', { policy: 'items', seconds: 99_999_999 }), {
      status: 400,
      document: { message: /604800/ },
    });
    t.match(await ask('/api/shadow', { policy: 'items', seconds: 3600 }), {
      status: 200,
      document: { policies: ['items', 'things'], shadowEndsAt: /Z$/, changed: true },
    });
    await eventually('it passes', statuses, all(200));
    await eventually('who shares the counter does', () => statuses('/things'), all(200));
    t.strictSame(await operator.send(2, '/others'), [200, 429], 'other policies deny');
    t.match((await ask('/api/explain', { request: 'GET /items' })).document, {
      decision: 'allow',
      policies: [{ reason: /shadow/ }, {}, {}],
    });
    const { document } = await ask('/api/policies');
    t.match(document, {
      refusal: null,
      text: POLICIES,
      policies: [
        { name: 'items', line: 5, mode: 'enforce', shadowEndsAt: /Z$/ },
        { name: 'things', shadowEndsAt: /Z$/ },
        { name: 'others', shadowEndsAt: null },
      ],
    });

    writeFileSync(operator.policyFile, `${POLICIES}# edited\n`);
    await until(
      async () => String((await ask('/api/policies')).document.text).endsWith('# edited\n'),
      'the edited file',
    );
    t.ok(all(200)(await statuses()), 'an unrelated edit does not end the shadow');

    t.match(await ask('/api/unshadow', { policy: 'things' }), {
      document: { changed: true, shadowEndsAt: null },
    });
    await eventually('it denies again', statuses, all(429));
    t.match(await ask('/api/unshadow', { policy: 'items' }), { document: { changed: false } });
    t.match(operator.process.output(), /"change":"shadow","policy":"items","seconds":3600/);

    // The machine's speed decides whether requests are decided meanwhile. The test only checks that the shadow mode
    // ends.
    await ask('/api/shadow', { policy: 'items', seconds: 2 });
    await until(
      async () =>
        ((await ask('/api/policies')).document.policies as { shadowEndsAt: unknown }[])[0]?.shadowEndsAt ===
        null,
      'it ends',
    );
    await eventually('and denies by itself', statuses, all(429));
  });
}

t.test('the shadow command', async (t) => {
  const operator = await startOperator(t, {}, POLICIES);
  t.match(await operator.ask('shadow', 'nowhere'), { code: 1, stderr: /has no such policy/ });
  t.match(await operator.ask('shadow', 'items', '--for', '8d'), {
    code: 2,
    stderr: /--for: "8d" .*at most 7d/,
  });
  const shadowed = await operator.ask('shadow', 'things', '--for', '2d');
  t.match(shadowed, { code: 0, document: { policies: ['items', 'things'], changed: true } });
  const hoursLeft = (Date.parse(String(shadowed.document.shadowEndsAt)) - Date.now()) / 3_600_000;
  t.ok(hoursLeft > 47 && hoursLeft < 49, `${hoursLeft} hours`);
  t.strictSame(await operator.send(3), [200, 200, 200], 'requests over the limit of 2 are admitted');
  t.match(await operator.ask('unshadow', 'items'), { code: 0, document: { shadowEndsAt: null } });
  t.match(await operator.ask('unshadow', 'items'), { code: 1, document: { changed: false } });
});
