import { isIP } from 'node:net';
import type { Millis } from '#shared/clock.ts';
import { parseRequestLine } from './mismatch.ts';
import type { PolicyTest } from './policy-set.ts';
import { type Path, type Report, reportMistake } from './problems.ts';
import type { PolicyFile } from './schema.ts';
import { bytesOf } from './target.ts';

type TestEntry = NonNullable<PolicyFile['tests']>[number];

/** Default time of a test: the epoch, at which windows of all lengths begin. */
const AT: Millis = 0;
const FROM = '192.0.2.1';
const REPLY = 200;
/** Maximum number of test requests. A reload runs all tests on the event loop, between requests of clients. */
const REQUESTS_MAX = 10_000;

/** @param names the policies of each row: one, or one for each entry of `limits` */
export function buildTests(
  file: PolicyFile,
  names: ReadonlyMap<string, readonly string[]>,
  report: Report,
  lineOf: (path: Path) => number,
): PolicyTest[] {
  const tests: PolicyTest[] = [];
  let requests = 0;
  for (const [i, entry] of (file.tests ?? []).entries()) {
    const here: Path = ['tests', i];
    requests += entry.times ?? 1;
    for (const [at, policy] of (entry.expect.policies ?? []).entries()) {
      if (!names.has(policy))
        report(
          [...here, 'expect', 'policies', at],
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
  const { name, from = FROM, times = 1, reply = REPLY, expect } = entry;
  const addresses = addressesIn(from, times);
  if (addresses === null)
    report(
      [...here, 'from'],
      `from is ${from}`,
      'write an address such as 192.0.2.1, or an IPv4 network such as 198.51.100.0/24',
    );
  const at = entry.at === undefined ? AT : Date.parse(entry.at);
  if (Number.isNaN(at))
    report([...here, 'at'], `at is ${entry.at}`, 'write a time such as 2026-11-20T10:00:00Z');
  if ((expect.allowed ?? 0) > times)
    report(
      [...here, 'expect', 'allowed'],
      'allowed is more than times',
      `the request is made ${times} times; write at most that`,
    );
  try {
    return {
      name,
      line,
      ...parseRequestLine(entry.request),
      rawHeaders: rawHeadersOf(entry.headers),
      body: entry.body ?? '',
      from: addresses ?? [],
      times,
      reply,
      replyHeaders: rawHeadersOf(entry.replyHeaders),
      at,
      plan: entry.plan ?? null,
      expect: {
        policies: expect.policies?.flatMap((name) => names.get(name) ?? []) ?? null,
        allowed: expect.allowed ?? null,
        status: expect.status ?? null,
        priority: expect.priority ?? null,
        headers: new Map(
          Object.entries(expect.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]),
        ),
      },
    };
  } catch (error) {
    reportMistake(report, [...here, 'request'], error);
    return null;
  }
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
