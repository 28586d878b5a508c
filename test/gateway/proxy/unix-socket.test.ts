import t from 'tap';
import { readConfig } from '#gateway/config.ts';

t.test('reads the path of a Unix socket, and refuses malformed ones', async (t) => {
  const upstream = (value: string): string => readConfig({ GATEWAY_UPSTREAM: value }).config.upstream;
  t.equal(upstream('unix:/run/app.sock'), 'unix:/run/app.sock');
  t.equal(upstream('unix:///run/app.sock'), 'unix:/run/app.sock');
  for (const wrong of [
    'unix:run/app.sock',
    'unix://host/run/app.sock',
    'unix:/run/app.sock?x=1',
    'unix:/',
    `unix:/${'a'.repeat(108)}`,
  ])
    t.throws(() => upstream(wrong), /GATEWAY_UPSTREAM.*unix:\/run\/app\.sock/s, wrong);
});
