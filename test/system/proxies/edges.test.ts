/** The blocks of the page on edges: NGINX lets only the edge in, and the gateway counts the address that the edge saw. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { type Authority, createAuthority, type Identity } from '#test/support/certificates.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { nginxCommand, startProxyProcess } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('docs/edges.md');
const blockWith = (text: string): string =>
  page.blocks.find((block) => block.text.includes(text))?.text ?? '';
/** An address of Cloudflare's list, and one of a visitor. */
const EDGE = '173.245.48.9';
const policies = policyFile('name: all, route: GET /*, identifier: ip, limit: 1, window: 366d');

t.test('NGINX with a client certificate', async (t) => {
  const trusted =
    /GATEWAY_HOST=127\.0\.0\.1 GATEWAY_TRUSTED_PROXIES=(cloudflare,loopback)`/.exec(page.text)?.[1] ?? '';
  const gateway = await startTestGateway(t, { policies, env: { GATEWAY_TRUSTED_PROXIES: trusted } });
  const own = createAuthority(t);
  const port = await startNginx(t, gateway.origin, own);
  const edge = own.issue('edge', 'DNS:edge.example.org');
  /** Sends what the edge sends for a visitor: the chain of the visitor, and its address. */
  const visit = (
    chain: string,
    identity: Identity | null,
    more: Record<string, string> = {},
  ): Promise<number> =>
    new Promise((resolve, reject) => {
      const files = identity && { cert: readFileSync(identity.cert), key: readFileSync(identity.key) };
      const headers = { host: 'shop.example.org', 'x-forwarded-for': `${chain}, ${EDGE}`, ...more };
      const options = { port, host: '127.0.0.1', rejectUnauthorized: false, headers, agent: false };
      const call = request({ ...options, ...files }, (reply) => {
        reply.resume();
        reply.on('end', () => resolve(reply.statusCode ?? 0));
      });
      call.on('error', reject);
      call.end();
    });

  t.equal(await visit('192.0.2.1', edge), 200);
  t.equal(await visit('192.0.2.1', edge), 429, 'the same visitor');
  t.equal(await visit('192.0.2.2', edge), 200, 'another one');
  t.equal(await visit('198.51.100.7, 192.0.2.2', edge), 429, 'what a visitor has invented changes nothing');
  t.equal(
    await visit('192.0.2.2', edge, { 'cf-connecting-ip': '192.0.2.99' }),
    429,
    'nor does another header',
  );
  t.equal(await visit('192.0.2.3', null), 400, 'without a certificate');
  const other = createAuthority(t).issue('edge', 'DNS:edge.example.org');
  t.equal(await visit('192.0.2.3', other), 400, 'with the certificate of another customer');
});

t.test('behind a tunnel, the gateway trusts this machine', async (t) => {
  const [, trusted = ''] = /GATEWAY_TRUSTED_PROXIES=(\S+)/.exec(blockWith('GATEWAY_HOST=127.0.0.1')) ?? [];
  const gateway = await startTestGateway(t, { policies, env: { GATEWAY_TRUSTED_PROXIES: trusted } });
  const visit = async (chain: string): Promise<number> =>
    (await fetch(gateway.origin, { headers: { 'x-forwarded-for': chain, accept: 'text/html' } })).status;
  t.equal(await visit('192.0.2.1'), 200);
  t.equal(await visit('198.51.100.7, 192.0.2.1'), 429);
});

t.test('the firewall has the networks of the file', async (t) => {
  const cwd = temporaryFolder(t);
  const list = ['173.245.48.0/20', '103.21.244.0/22', '2400:cb00::/32'];
  writeFileSync(join(cwd, 'edge.txt'), `${list.join('\n')}\n`);
  await startShell(t, cwd).run(blockWith('edge.nft'));
  const rules = readFileSync(join(cwd, 'edge.nft'), 'utf8');
  for (const network of list) t.match(rules, `${network},\n`);
  if (spawnSync('nft', ['--version']).status === 0 && process.getuid?.() === 0) {
    const checked = spawnSync('nft', ['--check', '--file', join(cwd, 'edge.nft')], { encoding: 'utf8' });
    t.equal(checked.status, 0, checked.stderr);
  }
});

/** Starts NGINX with the block of the page. @returns its port */
async function startNginx(t: Test, gateway: string, authority: Authority): Promise<number> {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const { cert, key } = authority.issue('shop', 'DNS:shop.example.org');
  const site = blockWith('ssl_verify_client')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
    .replace('/etc/nginx/origin.pem', cert)
    .replace('/etc/nginx/origin.key', key)
    .replace('/etc/nginx/origin-pull-ca.pem', authority.ca)
    .replace('http://127.0.0.1:8080', gateway);
  await startProxyProcess(t, nginxCommand(folder, site), port, folder);
  return port;
}
