import { isIP } from 'node:net';
import type { XStatic } from 'typebox/schema';
import type { PolicyTest } from '#gateway/policy/policy-set.ts';
import { attempt, type Path, type Report } from '#gateway/policy/problems.ts';
import { bytesOf, parseRequestLine } from '#gateway/policy/target.ts';
import type { Millis } from '#shared/clock.ts';
import { fileKey } from './key.ts';
import { list } from './schema-parts.ts';
import { TEST_DEFAULTS, testSchema } from './test-keys.ts';

export const tests = fileKey({
  schema: list(testSchema, 1000, 'a list of tests that the file has to pass before it is used'),
  more: 'At most 1,000',
  see: '#keys-of-a-test',
});

type TestEntry = XStatic<typeof testSchema>;

/** Maximum number of test requests. A reload runs all tests on the event loop, between requests of clients. */
const REQUESTS_MAX = 10_000;

/** @param names the policies of each row: one, or one for each entry of `limits` */
export function buildTests(
  entries: readonly TestEntry[],
  names: ReadonlyMap<string, readonly string[]>,
  report: Report,
  lineOf: (path: Path) => number,
): PolicyTest[] {
  const tests: PolicyTest[] = [];
  const marking = new Set([...names.values()].flat());
  let requests = 0;
  for (const [i, entry] of entries.entries()) {
    const here: Path = ['tests', i];
    requests += entry.times ?? 1;
    for (const [key, known] of [['policies', names] as const, ['marked', marking] as const])
      for (const [at, policy] of (entry.expect[key] ?? []).entries()) {
        if (!known.has(policy))
          report(
            [...here, 'expect', key, at],
            `unknown policy ${policy}`,
            'no entry of policies has this name; write one that has',
          );
      }
    const test = buildTest(entry, names, here, report, lineOf(here));
    if (test !== null) tests.push(test);
  }
  if (requests > REQUESTS_MAX)
    report(
      ['tests'],
      `the tests make ${requests} requests together, more than ${REQUESTS_MAX}`,
      'make times smaller',
      'key',
    );
  return tests;
}

function buildTest(
  entry: TestEntry,
  names: ReadonlyMap<string, readonly string[]>,
  here: Path,
  report: Report,
  line: number,
): PolicyTest | null {
  const { from, times, reply, regular, at: time } = { ...TEST_DEFAULTS, ...entry };
  const { name, expect } = entry;
  const addresses = addressesIn(from, times);
  if (addresses === null)
    report(
      [...here, 'from'],
      `from is ${from}`,
      'write an address such as 192.0.2.1, or an IPv4 network such as 198.51.100.0/24',
    );
  const at: Millis = Date.parse(time);
  if (Number.isNaN(at)) report([...here, 'at'], `at is ${time}`, 'write a time such as 2026-11-20T10:00:00Z');
  if ((expect.allowed ?? 0) > times)
    report(
      [...here, 'expect', 'allowed'],
      'allowed is more than times',
      `the request is made ${times} times; write at most that`,
    );
  const asked = attempt(report, [...here, 'request'], () => parseRequestLine(entry.request));
  if (asked === null) return null;
  return {
    name,
    line,
    ...asked,
    rawHeaders: rawHeadersOf(entry.headers),
    bodies: [entry.body ?? ''].flat(),
    from: addresses ?? [],
    times,
    reply,
    replyHeaders: rawHeadersOf(entry.replyHeaders),
    replyBytes: entry.replyBytes ?? null,
    at,
    isRegular: regular,
    plan: entry.plan ?? null,
    expect: {
      policies: expect.policies?.flatMap((name) => names.get(name) ?? []) ?? null,
      allowed: expect.allowed ?? null,
      marked: expect.marked ?? null,
      status: expect.status ?? null,
      priority: expect.priority ?? null,
      headers: new Map(
        Object.entries(expect.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]),
      ),
    },
  };
}

function rawHeadersOf(fields: TestEntry['headers'] = {}): string[] {
  return Object.entries(fields).flatMap(([name, value]) => [name, bytesOf(String(value))]);
}

const NETWORK = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d|[12]\d|3[0-2])$/;

/** @returns the first addresses of a network, at most `times`; null if it is neither an address nor an IPv4 network */
function addressesIn(from: string, times: number): readonly string[] | null {
  if (isIP(from) !== 0) return [from];
  const [, address = '', bits = ''] = NETWORK.exec(from) ?? [];
  if (isIP(address) === 0) return null;
  const size = 2 ** (32 - Number(bits));
  const written = address.split('.').reduce((value, byte) => value * 256 + Number(byte), 0);
  const first = written - (written % size);
  return Array.from({ length: Math.min(size, times) }, (_, i) =>
    [24, 16, 8, 0].map((shift) => Math.floor((first + i) / 2 ** shift) % 256).join('.'),
  );
}
