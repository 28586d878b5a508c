/** Prometheus: its page and its API for queries. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const folder = temporaryFolder(t);
writeFileSync(join(folder, 'prometheus.yml'), 'global: { scrape_interval: 1h }\n');
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    'prometheus',
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ],
});
const [directly] = neighbour.ways;
await until(
  async () => (await ask(directly, '/-/ready')).status === 200,
  'it is ready',
  neighbour.application,
);

t.test('its page', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/'));
  t.match(replies, [{ status: 302 }, { status: 200 }]);
  for (const path of [
    '/graph?g0.expr=up%7Bjob%3D%22a%22%7D&g0.tab=0',
    '/alerts',
    '/graph/',
    '/static/',
    '/none',
  ])
    await neighbour.same(t, path, (way) => ask(way, path));
});

t.test('queries', async (t) => {
  const sum = await neighbour.same(t, 'GET', (way) => ask(way, '/api/v1/query?query=1%2B1&time=1700000000'));
  t.match(sum, { status: 200, body: '[1700000000,"2"]' });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const sent = { method: 'POST', headers, body: 'query=vector(1)&start=1700000000&end=1700000060&step=30' };
  const range = await neighbour.same(t, 'POST', (way) => ask(way, '/api/v1/query_range', sent));
  t.match(range, { status: 200, body: '"resultType":"matrix"' });
  const wrong = await neighbour.same(t, 'a mistake', (way) => ask(way, '/api/v1/query?query=%7B'));
  t.equal(wrong.status, 400);
  await neighbour.same(t, 'names', (way) => ask(way, '/api/v1/label/__name__/values'));
});
