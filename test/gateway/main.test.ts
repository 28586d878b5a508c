/** The process starts, serves and ends; more of it is in test/system/processes and test/system/crashes. */
import t from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';

t.test('prints one line when ready, accepts connections, and exits with 0 on SIGTERM', async (t) => {
  const upstream = await startUpstream(t);
  const env = await environment({ GATEWAY_UPSTREAM: upstream.origin });
  const gateway = await launch(t, env);
  t.equal(gateway.output().match(/Gateway ready on .*17 policies.*in-process memory/g)?.length, 1);
  t.equal((await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/anything`)).status, 200);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const again =
      signal === 'SIGTERM'
        ? gateway
        : await launch(t, await environment({ GATEWAY_UPSTREAM: upstream.origin }));
    t.equal(await again.stop(signal), 0, signal);
  }
});
