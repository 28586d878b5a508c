/** The cases of requests.md, whole and split at every position, with the own parser and with node:http alone. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { unescaped } from '#test/gateway/exchanges/document.ts';
import { Readers, type Reading } from './readers.ts';

interface Case {
  readonly name: string;
  readonly bytes: Buffer;
  readonly log: readonly string[];
}

const CASE =
  /### (?<name>.+)\n\n```http\n(?<sent>[^`]*(?:`[^`]+)*?)\n```\n\n```log\n(?<log>[^`]*(?:`[^`]+)*?)\n```\n/g;

function readCases(): Case[] {
  const text = readFileSync(join(import.meta.dirname, 'requests.md'), 'utf8');
  return [...text.matchAll(CASE)].map(({ groups = {} }) => {
    const { name = '', sent = '', log = '' } = groups;
    const bytes = Buffer.from(unescaped(sent.replaceAll('\n', '\r\n')), 'latin1');
    return { name, bytes, log: log.split('\n') };
  });
}

/** Formats the requests that were read, and their replies. */
function outcomeOf({ requests, statuses, isClosed }: Reading): string[] {
  const lines = requests.flatMap(({ method, target, fields, body, isComplete }) => [
    `${method} ${target}${isComplete ? '' : ', not complete'}`,
    ...fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${JSON.stringify(fields[i + 1])}`] : [])),
    ...(body === '' ? [] : [`body ${JSON.stringify(body)}`]),
  ]);
  return [...lines, `${statuses.join(' ')}${isClosed ? ', closed' : ''}`];
}

const readers = new Readers();
const cases = readCases();
t.ok(cases.length >= 50, `${cases.length} cases`);

for (const { name, bytes, log } of cases) {
  t.test(name, async (t) => {
    const own = await readers.read(bytes, [], 'own', 'end');
    const reader = own.handedOver === null ? 'the gateway' : 'node:http';
    t.same([`by ${reader}`, ...outcomeOf(own)], log, 'all bytes at once');
    const outcome = outcomeOf(own);
    t.same(outcomeOf(await readers.read(bytes, [], 'node', 'end')), outcome, 'read by node:http alone');
    const cuts = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
    for (const replyAt of ['head', 'end', 'later'] as const) {
      const [split, alone] = await Promise.all(
        (['own', 'node'] as const).map((way) =>
          Promise.all(cuts.map((cut) => readers.read(bytes, [cut], way, replyAt, true))),
        ),
      );
      t.same(split?.map(outcomeOf), alone?.map(outcomeOf), `split at every position, reply at ${replyAt}`);
    }
    t.same(outcomeOf(await readers.read(bytes, cuts, 'own', 'end', true)), outcome, 'byte by byte');
  });
}
