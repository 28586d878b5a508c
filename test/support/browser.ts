/**
 * Starts a real browser, headless, with a profile of its own that is deleted afterwards. Chromium comes from the system
 * (test/runner/servers.ts).
 */
import { createServer } from 'node:http';
import { type BrowserContext, chromium } from 'playwright-core';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';
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

/** On a busy machine a browser may take this long to start. */
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

/** Serves one page on a separate origin, like a web site of other people. */
export async function startSite(owner: Owner, html: string): Promise<string> {
  const server = createServer((_req, res) => {
    res.setHeader('content-type', 'text/html; charset=utf-8');
    res.end(html);
  });
  const port = await listen(owner, server);
  return `http://127.0.0.1:${port}/`;
}
