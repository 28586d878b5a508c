/** A real browser, headless, with a profile of its own that ends with it. Chromium comes from the system (servers.ts). */
import { createServer } from 'node:http';
import { type BrowserContext, chromium } from 'playwright-core';
import type { Owner } from './gateway.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A root user has no sandbox, and a test has no use for a browser that calls home. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** On a busy machine a browser and a process that starts take what they need. */
const DEFAULT_TIMEOUT_MS = 120_000;

export async function startBrowser(owner: Owner): Promise<BrowserContext> {
  const profile = temporaryFolder(owner);
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    headless: true,
    args: flags,
  });
  browser.setDefaultTimeout(DEFAULT_TIMEOUT_MS);
  owner.teardown(() => browser.close());
  return browser;
}

/** A web site that is nobody's but the test's: one page, on an origin of its own. */
export async function startSite(owner: Owner, html: string): Promise<string> {
  const server = createServer((_req, res) => {
    res.setHeader('content-type', 'text/html; charset=utf-8');
    res.end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
}
