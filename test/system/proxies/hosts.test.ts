/** Several applications behind NGINX and Caddy, for real: the gateway counts by the host that the proxy tells. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { GATEWAY_VARIABLES, readConfig } from '#gateway/config.ts';
import { readPage } from '#test/docs/pages.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { askingProxyNames, startAskingProxy } from '#test/support/asking-proxies.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startLabelledProxy } from '#test/support/labelled-proxy.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { inOneWindow, insideLongWindow } from '#test/support/window.ts';

async function startGateway(t: Test, policies: string): Promise<number> {
  const decision = await freePort();
  await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies,
    env: { GATEWAY_DECISION_PORT: String(decision), ...BEHIND_PROXY },
  });
  return decision;
}

for (const name of askingProxyNames) {
  t.test(`${name}: a client cannot choose the host that is counted`, async (t) => {
    await insideLongWindow();
    const application = await startUpstream(t);
    const decision = await startGateway(
      t,
      policyFile(
        'name: shop, route: "* *", identifier: everyone, hosts: [shop.example.org], limit: 3, window: 366d',
      ),
    );
    const { port, errors } = await startAskingProxy(
      t,
      name,
      { decision, application: application.port },
      // Caddy serves only the host that is written there.
      (text) => text.replace(/^http:\/\/127\.0\.0\.1:(\d+) \{/m, 'http://:$1 {\n\tbind 127.0.0.1'),
    );
    const ask = async (host: string, more: Record<string, string> = {}): Promise<number> =>
      (await send(port, '/a', { headers: { host, ...more } })).status;
    t.equal(await ask('shop.example.org'), 200, errors());
    t.equal(await ask(`SHOP.example.org:${port}`), 200, errors());
    t.equal(await ask('shop.example.org.', { 'x-forwarded-host': 'a.test' }), 200, errors());
    for (const host of ['shop.example.org', 'Shop.Example.Org.', `shop.example.org:${port}`])
      t.equal(await ask(host, { 'x-forwarded-host': 'a.test' }), 429, host);
    t.equal(await ask('a.test', { 'x-forwarded-host': 'shop.example.org' }), 200);
  });
}

const RECIPE = readFileSync(join(projectRoot, 'examples/recipes/several-applications.yaml'), 'utf8');

t.test("the recipe's file, and its sites in Caddy", async (t) => {
  const { blocks } = readPage('docs/recipes.md');
  const textWith = (words: string): string => blocks.find(({ text }) => text.includes(words))?.text ?? '';
  const [shop, blog] = [await startUpstream(t), await startUpstream(t)];
  const decision = await startGateway(t, RECIPE);
  const { port, errors } = await startAskingProxy(
    t,
    'caddy',
    { decision, application: shop.port },
    (text) => {
      const listening = /^http:\/\/127\.0\.0\.1:(\d+) \{/m.exec(text)?.[1];
      if (listening === undefined) return text;
      const sites = textWith('import floodgate')
        .replace('127.0.0.1:9091', `127.0.0.1:${decision}`)
        .replace('127.0.0.1:3000', `127.0.0.1:${shop.port}`)
        .replace('127.0.0.1:3001', `127.0.0.1:${blog.port}`)
        .replace(/^([\w.]+\.example\.org) \{/gm, `http://$1:${listening} {\n\tbind 127.0.0.1`);
      return `{\n\tadmin off\n\tauto_https off\n}\n${sites}`;
    },
  );
  const ask = async (host: string): Promise<number> =>
    (await send(port, '/login', { method: 'POST', headers: { host } })).status;
  const statuses = await inOneWindow(60_000, async () => {
    const all: number[] = [];
    for (let i = 0; i < 6; i++) all.push(await ask('shop.example.org'));
    return [...all, await ask('a.blog.example.org')];
  });
  t.strictSame(statuses, [200, 200, 200, 200, 200, 429, 200], errors());
});

t.test("the recipe's labels for Traefik, and the files for Coolify", async (t) => {
  const { blocks } = readPage('docs/recipes.md');
  const textWith = (words: string): string => blocks.find(({ text }) => text.includes(words))?.text ?? '';
  const read = (name: string) => parse(readFileSync(join(projectRoot, 'examples/coolify', name), 'utf8'));
  const { floodgate } = read('floodgate.yaml').http.middlewares;
  const { gateway } = read('compose.yaml').services;
  const asked = new URL(floodgate.forwardAuth.address);
  t.ok(gateway.networks.coolify.aliases.includes(asked.hostname), 'the proxy finds the gateway');
  t.equal(asked.port, gateway.environment.GATEWAY_DECISION_PORT);
  const known = new Set<string>(GATEWAY_VARIABLES.map(({ name }) => name));
  for (const name of Object.keys(gateway.environment)) t.ok(known.has(name), name);
  t.doesNotThrow(() => readConfig(gateway.environment));

  const { services } = parse(textWith('traefik.http.routers.shop.rule'));
  const labels = {
    ...services.shop.labels,
    ...services.blog.labels,
    'traefik.http.middlewares.floodgate.forwardauth.address': floodgate.forwardAuth.address,
  };
  const application = await startUpstream(t);
  const decision = await startGateway(t, RECIPE);
  const { port } = await startLabelledProxy(t, labels, {
    forwardAuth: `http://127.0.0.1:${decision}`,
    service: application.origin,
  });
  const ask = async (host: string, more: Record<string, string> = {}): Promise<number> =>
    (await send(port, '/login', { method: 'POST', headers: { host, ...more } })).status;
  const statuses = await inOneWindow(60_000, async () => {
    const all: number[] = [];
    for (let i = 0; i < 6; i++) all.push(await ask('shop.example.org'));
    return [
      ...all,
      await ask('shop.example.org', { 'x-forwarded-host': 'a.test' }),
      await ask('a.blog.example.org'),
    ];
  });
  t.strictSame(statuses, [200, 200, 200, 200, 200, 429, 429, 200]);
});
