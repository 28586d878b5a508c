import t from 'tap';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { startPostgres } from '#test/support/postgres-process.ts';
import { surviveKills } from '#test/system/crashes/kills.ts';

t.test(
  'the process is killed 20 times in 3,000 responses, on PostgreSQL: each is delivered at least once',
  async (t) => {
    const server = await startPostgres({ isDurable: true });
    t.teardown(() => server.close());
    const { url } = await createPostgresDatabase('migrated', server.url);
    await surviveKills(t, { url, responses: 3_000, kills: 20 });
  },
);
