/**
 * Asks every gate the same: each document of `*.yaml` is a policy file with `steps`, which are tests of a policy file that share
 * their counters. They go to a rehearsal, to a gateway in memory, to two gateways on Redis and on a Cluster that are asked in
 * turn, and to the decision listener. So what a key of the policy file promises is proved once, everywhere it holds.
 *
 * A document has, beside the keys of a policy file:
 * - `title`: what it proves
 * - `steps`: as `tests`, and a name is not needed. All requests of a step but the last are sent at once. `at` moves the clock.
 * - `each`: keys that all steps have
 * - `gateways: 1`: for what replies prove, such as credentials, because a gateway tells it to the others a moment later
 * - `files`: the texts of files that the policy file names, and `env`: settings of the gateways
 * - `visitors`: addresses that were here on the day before, for `newcomers` on Redis
 * - `gates`: the names of the only gates that it goes to
 *
 * A step has, beside the keys of a test:
 * - `query`: the query of its target, which may be longer than that of a test
 * - `fields`: header fields such as two of one name, and `chain`: X-Forwarded-For as the trusted proxy sends it, null for none
 * - `via`: how the decision listener is asked: `auth-request`, `ext-authz`, or `replied`, which tells it the status in `reply`
 * - `write`: files that change before the request, and `refused`: what the log says if they must not be used
 * - `ban`, `unban`: an operator does this before, such as `ip 192.0.2.1`
 * - `inTurn`: its requests are sent one after the other. `chunked`: its body has no Content-Length
 * - `hold`: the application holds the requests, and `allowed` are those that it has. `release`: it replies to them before
 * - `later`: the step is repeated until it holds, for what comes a moment after a reply
 *
 * `expect` has, beside the keys of a test, `tells` (patterns of the last reply's body), `without` (headers), `arrives` (`target` and
 * fields of the last request of the application, null for none), `record` (fields of the stored refusal), `why`
 * (patterns of what `why` says of it), `counted` (metrics
 * of all gateways), and `explains`: what `explain` says instead, which only a rehearsal can. In it `…` stands for any text.
 *
 * `<i>` is the number of a request of its step, from 0, `<text × 100>` is a text a hundred times, `<digest IDENTIFIER VALUE>` a digest, `<token sub=ada>` a signed token and `<keys>` its
 * key set. `version`, and the identifiers `ip` and `api-key`, are added where they are missing. Redis and a Cluster have their
 * own clock: a document with a time (`at`) does not go there, and of headers with a time only the rest is compared. Nor does a
 * document go where nobody sees what it needs: a rehearsal has no settings, and the decision listener neither bodies nor replies.
 */
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { identityOf } from '#gateway/identity/digest.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { historySinceKey } from '#gateway/limiter/replicas.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/groups.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import type { Clock } from '#shared/clock.ts';
import { difference, opened } from '#test/conversations/document.ts';
import { projectRoot } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';
import { type Document, digestOf, documentsOf, type Step } from './document.ts';
import { decide, type Engine, rehearse, type Seen, type Served, serve } from './engines.ts';

const redis = await startRedis(t);
const cluster = await startCluster(t);
const empty = async (): Promise<void> => {
  await redis.client.flushall();
  for (const { client } of cluster.nodes) await client.flushall();
};

interface Gate {
  readonly start: (t: Test, document: Document, clock: Clock) => Promise<Engine>;
  /** Whether its clock is that of the document. */
  readonly isTimed: boolean;
}

/** Files are read again by the clock, so it has to go on. */
function gatesOf({ gateways, files }: Document): Readonly<Record<string, Gate>> {
  const isTimed = Object.keys(files).length === 0;
  const own = (start: ReturnType<typeof serve>, isTimed: boolean): Gate => ({
    isTimed,
    start: (t, document, clock) => start(t, document, isTimed ? clock : null),
  });
  return {
    rehearsal: { start: rehearse, isTimed: true },
    memory: own(serve(1, {}), isTimed),
    Redis: own(serve(gateways, { GATEWAY_REDIS_URL: redis.url }), false),
    Cluster: own(serve(gateways, { GATEWAY_REDIS_URL: cluster.url }), false),
    'decision listener': own(decide, isTimed),
  };
}

/** Whether a gate can take a document. */
function takes(name: string, { isTimed }: Gate, { steps, gateways, gates, env }: Document): boolean {
  if (gates !== null) return gates.includes(name);
  if (!isTimed && steps.some((step) => step.isTimed)) return false;
  if (name === 'rehearsal') return Object.keys(env).length === 0 && !steps.some(isServed);
  return name !== 'decision listener' || (gateways > 1 && !steps.some(needsMore));
}

/** Whether only running gateways can do it. */
function isServed({ own }: Step): boolean {
  const { chain, write, ban, unban, later, chunked, hold } = own;
  return [chain, write, ban, unban, later, chunked, hold].some((key) => key !== undefined);
}

/** Whether a proxy that only asks cannot tell what the step is about. */
function needsMore({ test, own, expect }: Step): boolean {
  return (
    test.bodies.some((body) => body !== '') ||
    test.reply !== 200 ||
    test.replyHeaders.length > 0 ||
    test.replyBytes !== null ||
    own.hold !== undefined ||
    own.chunked !== undefined ||
    expect.arrives !== undefined
  );
}

const files = globSync('test/policies/*.yaml', { cwd: projectRoot }).sort();
const read = await Promise.all(files.map((file) => documentsOf(join(projectRoot, file))));
for (const [i, file] of files.entries())
  t.test(basename(file, '.yaml'), async (t) => {
    for (const document of read[i] ?? [])
      t.test(document.title, async (t) => {
        for (const [name, gate] of Object.entries(gatesOf(document)))
          if (takes(name, gate, document)) t.test(name, async (t) => pass(t, document, gate));
      });
  });

/** Sends all steps of a document through one gate. */
async function pass(t: Test, document: Document, { start, isTimed }: Gate): Promise<void> {
  if (!isTimed) {
    assertLong(document.set);
    await insideLongWindow();
    await empty();
  }
  if (document.visitors !== null) await remember(document.visitors);
  let now = document.steps[0]?.test.at ?? 0;
  const engine = await start(t, document, () => now);
  for (const step of document.steps) {
    if (step.isTimed) now = step.test.at;
    await engine.prepare(step);
    let result: readonly [got: object, expected: object] = [{}, {}];
    const attempt = async (): Promise<boolean> => {
      result = await compared(step, await take(engine, step), engine, isTimed);
      return JSON.stringify(result[0]) === JSON.stringify(result[1]);
    };
    if (step.own.later === true) await until(attempt, step.title);
    else await attempt();
    t.strictSame(...result, step.title);
  }
}

/** Histories began a week ago, and these addresses were here on the day before. The day does not end soon. */
async function remember(addresses: readonly string[]): Promise<void> {
  await insideLongWindow(DAY_MS, 120_000);
  const yesterday = (Math.floor(Date.now() / DAY_MS) - 1) * 2 ** HISTORY_DAYS + 1;
  await redis.client.set(historySinceKey(digestOf('everyone', '')), Date.now() - 7 * DAY_MS);
  for (const address of addresses)
    await redis.client.set(historyKey(identityOf(digestOf('ip', address))), String(yesterday));
}

/** A window of the wall clock must not end during the test. */
function assertLong({ policies }: PolicySet): void {
  for (const { name, windowSeconds } of policies)
    if (windowSeconds !== LONG_WINDOW_SECONDS && windowSeconds !== 0)
      throw new Error(`policy ${name}: write window: 366d, or give the steps a time (at)`);
}

type Taken = Seen & { readonly allowed: number };

/** Replaces `<i>` in the target and the fields of a request by its number. */
function numbered(step: Step, i: number): Step {
  const of = (text: string): string => text.replaceAll('<i>', String(i));
  const { target, rawHeaders } = step.test;
  return { ...step, test: { ...step.test, target: of(target), rawHeaders: rawHeaders.map(of) } };
}

/** Makes the requests of a step. @returns what the last one got, and how many passed */
async function take(engine: Engine, step: Step): Promise<Taken> {
  const { served } = engine;
  const ask = (step: Step, i: number): Promise<Seen> => engine.ask(numbered(step, i), i);
  const { times } = step.test;
  if (step.own.hold === true && served !== null) {
    const answered: Seen[] = [];
    const before = served.application.held.length;
    const held = (): number => served.application.held.length - before;
    for (let i = 0; i < times; i++) void ask(step, i).then((seen) => answered.push(seen));
    await until(() => held() + answered.length === times, step.title);
    const last = answered.at(-1) ?? { status: 200, passes: true, headers: {}, body: null };
    return { ...last, allowed: held() };
  }
  const first: Seen[] = [];
  if (step.own.inTurn === true) for (let i = 0; i < times - 1; i++) first.push(await ask(step, i));
  else first.push(...(await Promise.all(Array.from({ length: times - 1 }, (_, i) => ask(step, i)))));
  const last = await ask(step, times - 1);
  return { ...last, allowed: [...first, last].filter(({ passes }) => passes).length };
}

const TIME = { 'retry-after': /^\d+$/, 'x-ratelimit-reset': /^\d+$/, ratelimit: /(?<=;t=)\d+/g };

/** @returns what was got and what was expected, as far as both can be known */
async function compared(
  { test, expect }: Step,
  got: Taken,
  { served }: Engine,
  isTimed: boolean,
): Promise<readonly [got: object, expected: object]> {
  const told = (name: string, value: string): string => {
    const time = TIME[name as keyof typeof TIME];
    return isTimed || time === undefined ? value : value.replace(time, 'a time');
  };
  const wanted: Record<string, unknown> = {};
  const found: Record<string, unknown> = {};
  for (const key of ['status', 'allowed', 'policies', 'marked', 'priority'] as const) {
    if (test.expect[key] === null || got[key] === undefined) continue;
    [wanted[key], found[key]] = [test.expect[key], got[key]].map((value) =>
      Array.isArray(value) ? [...value].sort() : value,
    );
  }
  const headerOf = (name: string) => got.headers[name.toLowerCase()] ?? null;
  for (const [name, value] of test.expect.headers) {
    wanted[name] = told(name, value);
    found[name] = headerOf(name) === null ? null : told(name, String(headerOf(name)));
  }
  for (const name of expect.without ?? []) [wanted[name], found[name]] = [null, headerOf(name)];
  if (expect.explains !== undefined)
    [wanted.explains, found.explains] = [
      null,
      difference(opened(expect.explains), got.explained, new Map(), 'what explain says'),
    ];
  if (served === null) return [found, wanted];
  for (const pattern of [expect.tells ?? []].flat()) {
    wanted[pattern] = pattern;
    found[pattern] = new RegExp(pattern).test(got.body ?? '') ? pattern : got.body;
  }
  for (const [name, value] of Object.entries(expect.arrives ?? {}))
    [wanted[`arrives ${name}`], found[`arrives ${name}`]] = [value, served.application.arrived[name] ?? null];
  if (expect.record !== undefined || expect.why !== undefined) {
    const id = String(headerOf('x-gateway-decision'));
    const records = await Promise.all(served.gateways.map(({ gateway }) => gateway.findDecision(id)));
    const record = records.find((one) => one !== null) ?? null;
    wanted.record = expect.record ?? {};
    found.record = record && picked(record, expect.record ?? {});
    const why = record === null ? '' : JSON.stringify(textOf(record));
    for (const pattern of [expect.why ?? []].flat()) {
      wanted[pattern] = pattern;
      found[pattern] = new RegExp(pattern).test(why) ? pattern : why;
    }
  }
  for (const [name, value] of Object.entries(expect.counted ?? {}))
    [wanted[name], found[name]] = [value, countedIn(served.gateways, name)];
  return [found, wanted];
}

const picked = (all: object, keys: object): object =>
  Object.fromEntries(Object.keys(keys).map((key) => [key, all[key as keyof typeof all]]));

/** @param metric such as `floodgate_listed_total{list=deny}` */
function countedIn(gateways: Served['gateways'], metric: string): number {
  const [name = '', labels = ''] = metric.replace('}', '').split('{');
  const pairs = labels === '' ? [] : labels.split(',').map((label) => label.split('='));
  return gateways
    .flatMap(({ gateway }) => gateway.samples())
    .filter((one) => one.name === name && pairs.every(([label = '', value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
