/** Prometheus: its page and its API for queries. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, startNeighbour } from '#test/support/neighbour.ts';
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

askForPage(t, neighbour, 'Prometheus');

t.test('a query by POST', async (t) => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const sent = { method: 'POST', headers, body: 'query=vector(1)&start=1700000000&end=1700000060&step=30' };
  const range = await neighbour.same(t, 'POST', (way) => ask(way, '/api/v1/query_range', sent));
  t.match(range, { status: 200, body: '"resultType":"matrix"' });
});
