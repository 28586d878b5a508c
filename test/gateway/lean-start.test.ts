/** What a gateway that only limits does not load: each of these is megabytes in every process. */
import t from 'tap';
import { environment } from '#test/support/gateway-process.ts';
import { start } from '#test/support/process.ts';

async function loadedBy(more: Record<string, string>): Promise<readonly string[]> {
  const env = await environment({ GATEWAY_UPSTREAM: 'http://127.0.0.1:9', ...more });
  const gateway = start(['--require=./test/support/loaded-modules.cjs', 'gateway/main.ts'], env);
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  const healthy = await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/healthz`);
  t.equal(healthy.status, 200);
  await gateway.stop();
  const [, list = ''] = await gateway.until(/^Loaded (\[.*\])$/m);
  return JSON.parse(list);
}

t.test('a gateway that limits', async (t) => {
  const loaded = await loadedBy({});
  t.ok(
    loaded.some((name) => name.endsWith('/gateway/app.ts')),
    'the list is that of a gateway',
  );
  const find = (pattern: RegExp): readonly string[] => loaded.filter((name) => pattern.test(name));
  t.same(find(/internal\/deps\/undici/), [], 'the HTTP client that Node has built in');
  t.same(find(/^language:/), [], 'the tables of languages');
  t.same(
    find(/node_modules\/(?:ajv|prom-client|@opentelemetry|@grpc|protobufjs|re2js)\//),
    [],
    'libraries of what is switched off, or was not asked for',
  );
});
