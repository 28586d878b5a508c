/** Caddy keeps idle connections for two minutes. It must not repeat a POST that it sends on one while the gateway closes it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { startProxyProcess } from '#test/support/proxy-process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startDistantRelay } from '#test/support/relay.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Caddy keeps 32 idle connections. */
const CONNECTIONS = 20;
const POSTS = 100;
const REST_MS = 70_000;
const CLIENT = '127.0.0.2';

t.test('no POST through Caddy is lost after more than a minute of rest', async (t) => {
  const upstream = await startUpstream(t, (req, res) => void req.resume().on('end', () => res.end('ok')));
  let restedMs = 0;
  const { port } = await startTestGateway(t, {
    upstream,
    policies: policyFile(),
    clock: () => performance.now() + restedMs,
    env: { GATEWAY_OWN_PARSER: '1', GATEWAY_TRUSTED_PROXIES: '127.0.0.1' },
  });
  const relay = await startDistantRelay(t, port, 100);
  const site = await freePort();
  const folder = temporaryFolder(t);
  const config = join(folder, 'Caddyfile');
  writeFileSync(
    config,
    `{
	admin off
	auto_https off
}
http://127.0.0.1:${site} {
	reverse_proxy 127.0.0.1:${relay.port}
}
`,
  );
  await startProxyProcess(t, ['caddy', 'run', '--config', config, '--adapter', 'caddyfile'], site, folder);
  const post = async (): Promise<number> => {
    const reply = await fetch(`http://127.0.0.1:${site}/orders`, { method: 'POST', body: 'x'.repeat(100) });
    await reply.arrayBuffer();
    return reply.status;
  };
  const posts = (count: number): Promise<number[]> => Promise.all(Array.from({ length: count }, post));
  t.strictSame(new Set(await posts(CONNECTIONS)), new Set([200]));
  const client = sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', CLIENT);
  await client.until(/ok$/);

  restedMs = REST_MS;
  t.match(await client.ended(), 'Keep-Alive: timeout=65', 'the gateway has checked all connections');
  // Caddy itself closes those of the next requests that it does not keep.
  t.equal(relay.ended, 0, 'it has closed none of those of Caddy');
  t.strictSame(
    (await posts(POSTS)).filter((status) => status !== 200),
    [],
  );
});
