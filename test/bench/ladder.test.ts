import { globSync, readdirSync } from 'node:fs';
import t from 'tap';
import { PLACES, sharesOf } from '#bench/ladder/profile.ts';
import { accepts, freePort } from '#test/support/ports.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

t.test('a function belongs to its own step, or to that of its caller', async (t) => {
  const node = (id: number, functionName: string, url: string, children: readonly number[] = []) => ({
    ...{ id, callFrame: { functionName, url }, children },
  });
  const nodes = [
    node(1, '(root)', '', [2, 3, 7, 8]),
    node(2, '(idle)', ''),
    node(3, 'onStreamRead', 'node:internal/stream_base_commons', [4]),
    node(4, 'plainHead', 'file:///app/gateway/listen/plain/plain-request.ts', [5, 6]),
    node(5, 'indexOf', 'node:buffer'),
    node(6, 'writeTo', 'file:///app/gateway/http/shared-reply.ts', [9]),
    node(7, 'processTimers', 'node:internal/timers'),
    node(8, '(program)', ''),
    node(9, 'writeBuffer', ''),
  ];
  // The first half is the start of the process.
  const samples = [7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 3, 5, 6, 8, 8, 9, 9, 9];
  t.same(Object.fromEntries(sharesOf({ nodes, samples })), {
    'node:net and its streams': 0.125,
    'our parser': 0.125,
    'text and headers': 0.125,
    'the kernel reads, and the event loop': 0.25,
    'the kernel writes': 0.375,
  });
});

t.test('each step of the gateway has files', async (t) => {
  const files = globSync('gateway/**/*.ts', { cwd: projectRoot });
  const ours = PLACES.filter(([, places]) => places.source.startsWith('gateway'));
  t.ok(ours.length > 0);
  for (const [title, places] of ours)
    t.ok(
      files.some((file) => places.test(file)),
      title,
    );
});

t.test('the bare server denies beyond the limit, and leaves a profile', async (t) => {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const options = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
  const server = start(['bench/ladder/bare-server.ts', String(port), '1'], options);
  t.teardown(() => server.stop('SIGKILL'));
  await until(() => accepts(port), 'the bare server listens', server);
  const ask = async (): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}/`);
    await response.text();
    return response.status;
  };
  t.equal(await ask(), 200);
  t.equal(await ask(), 429);
  t.equal(await server.stop(), 0);
  t.match(readdirSync(folder), [/\.cpuprofile$/]);
});
