import t from 'tap';
import { sharedDatabase } from '#test/support/database.ts';
import { surviveKills } from './kills.ts';

t.test('the process is killed 20 times in 1,000 responses: each is delivered at least once', async (t) =>
  surviveKills(t, { url: await sharedDatabase(t), responses: 1_000, kills: 20 }),
);
