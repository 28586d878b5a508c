/**
 * Twelve concurrent writers send the same request to every operation that writes, over two APIs on one database.
 * Nothing unique is created twice, there is no 500, and the rows are consistent. A route that is added later fails here
 * until expected.ts has it.
 */
import t, { type Test } from 'tap';
import type { Sent } from '#test/support/description.ts';
import { successOf } from '../docs/successes.ts';
import { type Expected, expected, isWrite } from './expected.ts';
import { brokenInvariants } from './invariants.ts';
import { countByStatus, startTwins, WRITERS } from './twins.ts';

const { first, twelve } = await startTwins(t);
const { api, description, operations, tidy } = first;
const writing = operations.filter(isWrite);

t.test('every operation that writes has an expected result for twelve concurrent calls', (t) => {
  const names = new Set(writing.map(({ name }) => name));
  for (const name of names) t.ok(expected.has(name), `add ${name} to expected.ts`);
  for (const name of expected.keys()) t.ok(names.has(name), `${name} in expected.ts exists`);
  t.end();
});

for (const operation of writing) {
  t.test(operation.name, async (t) => {
    await tidy();
    const replies = await twelve(await successOf(first, operation));
    for (const reply of replies) {
      if (reply.status >= 500) t.fail(`${reply.status} ${reply.text}`);
      t.strictSame(description.problemsOf(operation, reply), []);
    }
    check(t, expected.get(operation.name), replies);
    t.strictSame(await brokenInvariants(api.context.db), []);
  });
}

function check(t: Test, kind: Expected | undefined, replies: readonly Sent[]): void {
  const done = replies.filter(isSuccess);
  const counts = JSON.stringify(countByStatus(replies));
  switch (kind) {
    case 'each': {
      t.equal(done.length, WRITERS, counts);
      t.equal(new Set(done.map(identityOf)).size, WRITERS, 'each call created another row');
      return;
    }
    case 'same':
      t.equal(done.length, WRITERS, counts);
      return;
    case 'once':
      t.equal(done.length, 1, counts);
      return;
    case 'some':
      t.ok(done.length >= 1, counts);
      return;
    case undefined:
      t.fail('expected.ts has no result for this operation');
      return;
    default:
      kind satisfies never;
  }
}

/** A redirect tells in its address whether the request succeeded. */
function isSuccess({ headers, status, text }: Sent): boolean {
  return status < 400 && !`${headers.location ?? ''}${text}`.includes('error=');
}

function identityOf({ text }: Sent): unknown {
  const { data } = JSON.parse(text);
  return data.id ?? data.fileUrl;
}
