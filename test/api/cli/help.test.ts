import t from 'tap';
import { apiCli } from '#test/support/cli.ts';

t.test('no help text has the password of DATABASE_URL', async (t) => {
  const env = { DATABASE_URL: 'postgres://floodgate:secret@db.example.com/floodgate' };
  for (const command of ['db copy', 'db backup', 'files copy', 'people', 'people add']) {
    const { code, stdout } = await apiCli([...command.split(' '), '--help'], { env });
    t.equal(code, 0);
    t.match(stdout, 'DATABASE_URL', command);
    t.notMatch(stdout, 'secret', command);
  }
});
