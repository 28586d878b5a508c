/**
 * Many random connections. `node test/gateway/listen/plain/fuzz.ts FROM COUNT` tries others; a difference
 * prints the seed to repeat it.
 */
import t from 'tap';
import { rounds, SEED } from '#test/support/seed.ts';
import { compare } from './differential.ts';
import { Readers } from './readers.ts';

const CASES = rounds(100_000);

t.test('node:http reads every request that our parser accepts in the same way', async (t) => {
  const readers = new Readers();
  const { cases, plain, differences } = await compare(readers, SEED, CASES);
  t.same(differences, []);
  t.equal(cases, CASES);
  t.ok(plain > CASES / 4, `${plain} connections begin with a plain request`);
});
