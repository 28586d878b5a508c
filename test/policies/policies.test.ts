/**
 * Asks every gate the same: each document of `*.yaml` is a policy file with `steps`, which are tests of a policy file that share
 * their counters. They go to a rehearsal, to a gateway in memory, to two gateways on Redis and on a Cluster that are asked in
 * turn, and to the decision listener. So what a key of the policy file promises is proved once, everywhere it holds.
 *
 * A document has, beside the keys of a policy file:
 * - `title`: what it proves
 * - `steps`: as `tests`, and a name is not needed. All requests of a step but the last are sent at once.
 * - `gateways: 1`: for what replies prove, such as credentials, because a gateway tells it to the others a moment later
 *
 * `version`, and the identifiers `ip` and `api-key`, are added where they are missing. Redis and a Cluster have their own clock: a
 * document with a time (`at`) does not go there, and of headers with a time only the rest is compared. The decision listener
 * sees neither bodies nor replies, so documents that need them do not go there either.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { parseAllDocuments, stringify } from 'yaml';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { PolicySet, PolicyTest } from '#gateway/policy/policy-set.ts';
import { projectRoot } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';
import { type Ask, type Document, decide, rehearse, type Seen, serve } from './engines.ts';

const redis = await startRedis(t);
const cluster = await startCluster(t);
const empty = async (): Promise<void> => {
  await redis.client.flushall();
  for (const { client } of cluster.nodes) await client.flushall();
};

interface Gate {
  readonly start: (t: Test, document: Document) => Promise<Ask>;
  /** Whether its clock is that of the document. */
  readonly isTimed: boolean;
}

const stopped = (at: number) => () => at;
const gatesOf = (count: number): Readonly<Record<string, Gate>> => ({
  rehearsal: { start: rehearse, isTimed: true },
  memory: { start: serve(1, {}, stopped), isTimed: true },
  Redis: { start: serve(count, { GATEWAY_REDIS_URL: redis.url }, () => undefined), isTimed: false },
  Cluster: { start: serve(count, { GATEWAY_REDIS_URL: cluster.url }, () => undefined), isTimed: false },
  'decision listener': { start: decide, isTimed: true },
});

const IDENTIFIERS = {
  ip: { source: 'client-address', ipv6Prefix: 64 },
  'api-key': { source: [{ header: 'x-api-key' }, { bearer: 'fbk_' }] },
};

for (const file of globSync('test/policies/*.yaml', { cwd: projectRoot }).sort()) {
  t.test(basename(file, '.yaml'), async (t) => {
    const documents = parseAllDocuments(readFileSync(join(projectRoot, file), 'utf8'));
    for (const document of documents) {
      const { title, steps, gateways = 2, ...written } = document.toJS();
      const policies = { version: 1, identifiers: IDENTIFIERS, ...written };
      const tests = steps.map((step: object, i: number) => ({ name: `${i + 1}`, ...step }));
      const set = loadPolicies(stringify({ ...policies, tests }), file);
      const parsed = { text: stringify(policies), set, steps: set.tests, at: set.tests[0]?.at ?? 0 };
      const titled = (step: object, i: number): string => `${i + 1}: ${JSON.stringify(step)}`;
      t.test(title, async (t) => {
        for (const [name, { start, isTimed }] of Object.entries(gatesOf(gateways))) {
          if (!isTimed && steps.some(({ at }: { at?: string }) => at !== undefined)) continue;
          if (name === 'decision listener' && (gateways === 1 || parsed.steps.some(needsMore))) continue;
          t.test(name, async (t) => {
            if (!isTimed) {
              assertLong(set);
              await insideLongWindow();
              await empty();
            }
            const ask = await start(t, parsed);
            for (const [i, step] of parsed.steps.entries())
              t.strictSame(...compared(step, await take(ask, step), isTimed), titled(steps[i], i));
          });
        }
      });
    }
  });
}

/** Whether a proxy that only asks cannot tell what the step is about. */
function needsMore({ bodies, reply, replyHeaders, replyBytes, expect }: PolicyTest): boolean {
  return (
    bodies.some((body) => body !== '') ||
    reply !== 200 ||
    replyHeaders.length > 0 ||
    replyBytes !== null ||
    expect.marked !== null
  );
}

/** A window of the wall clock must not end during the test. */
function assertLong({ policies }: PolicySet): void {
  for (const { name, windowSeconds } of policies)
    if (windowSeconds !== LONG_WINDOW_SECONDS && windowSeconds !== 0)
      throw new Error(`policy ${name}: write window: 366d, or give the steps a time (at)`);
}

/** Makes the requests of a step. @returns what the last one got, and how many passed */
async function take(ask: Ask, step: PolicyTest): Promise<Seen & { readonly allowed: number }> {
  const { times } = step;
  const first = await Promise.all(Array.from({ length: times - 1 }, (_, i) => ask(step, i)));
  const last = await ask(step, times - 1);
  return { ...last, allowed: [...first, last].filter(({ passes }) => passes).length };
}

const TIME = { 'retry-after': /^\d+$/, 'x-ratelimit-reset': /^\d+$/, ratelimit: /(?<=;t=)\d+/g };

/** @returns what was got and what was expected, as far as both can be known */
function compared(
  { expect }: PolicyTest,
  got: Seen & { readonly allowed: number },
  isTimed: boolean,
): [got: object, expected: object] {
  const told = (name: string, value: string): string => {
    const time = TIME[name as keyof typeof TIME];
    return isTimed || time === undefined ? value : value.replace(time, 'a time');
  };
  const wanted: Record<string, unknown> = {};
  const found: Record<string, unknown> = {};
  for (const key of ['status', 'allowed', 'policies', 'marked', 'priority'] as const) {
    if (expect[key] === null || got[key] === undefined) continue;
    [wanted[key], found[key]] = [expect[key], got[key]].map((value) =>
      Array.isArray(value) ? [...value].sort() : value,
    );
  }
  for (const [name, value] of expect.headers) {
    wanted[name] = told(name, value);
    found[name] = got.headers[name] === undefined ? null : told(name, String(got.headers[name]));
  }
  return [found, wanted];
}
