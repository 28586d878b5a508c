/** The hostile soak in short, with the same requests each time: no fault, nothing that is not as described. */
import t from 'tap';
import { soak, startHostileApi } from '#bench/hostile/soak.ts';
import type { Vitals } from '#bench/hostile/watch.ts';
import { Processes } from '#bench/run/processes.ts';

t.test('the bench sends two requests to every operation, four at once, and the API stays up', async (t) => {
  const vitals: Vitals[] = [];
  const processes = new Processes();
  t.teardown(() => processes.stopAll());
  const api = await startHostileApi(processes, (one) => void vitals.push(one));
  const { described, tally, operations } = await soak({
    ...{ origin: api.origin, rounds: 1, batch: 2, seed: 1 },
  });
  t.strictSame(tally.wrongLines(), []);
  t.equal(api.ending(), null, 'the API still runs');
  t.equal(tally.kinds.get('500'), undefined);
  t.equal(operations, described);
  t.ok(described > 200, `${described} operations`);
  t.ok(vitals.length > 0, 'the event loop was measured');
  t.comment(tally.kindsText());
});
