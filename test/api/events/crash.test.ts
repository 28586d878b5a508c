import t from 'tap';
import { sharedDatabase } from '#test/support/database.ts';
import { surviveKills } from './crashes.ts';

// It starts the API 22 times, which on a busy machine takes longer than a test file usually may.
t.setTimeout(400_000);

t.test(
  'the process is killed 20 times in 1,000 responses: each is delivered at least once',
  { timeout: 390_000 },
  async (t) => surviveKills(t, { url: await sharedDatabase(t), responses: 1_000, kills: 20 }),
);
