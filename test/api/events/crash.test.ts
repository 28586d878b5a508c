import t from 'tap';
import { sharedDatabase } from '#test/support/database.ts';
import { surviveKills } from './crashes.ts';

t.test('the process is killed 5 times in 250 responses: each is delivered at least once', async (t) =>
  surviveKills(t, { url: await sharedDatabase(t), responses: 250, kills: 5 }),
);
