/** A page on another origin, in a real browser: what CORS allows, and what it can read of the gateway's 429. */
import t from 'tap';
import { surveyBody } from '#test/support/api-app.ts';
import { startBrowser, startSite } from '#test/support/browser.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import type { Json } from '#test/support/json.ts';
import { policiesWithoutEdges } from '#test/support/policies-without-edges.ts';
import { freePort } from '#test/support/ports.ts';
import { startStack } from '#test/support/stack.ts';

const adminPort = String(await freePort());
const stack = await startStack(t, {
  gatewayEnv: { GATEWAY_POLICIES: policiesWithoutEdges(t), GATEWAY_ADMIN_PORT: adminPort },
});
const { workspaceId } = stack;
const survey = await stack.manage(
  'POST',
  '/api/v1/management/surveys',
  surveyBody({ workspaceId, type: 'website' }),
);
const surveyId = (survey as { id: string }).id;

const site = await startSite(t, '<!doctype html><title>Shop</title>');
const browser = await startBrowser(t);
const page = await browser.newPage();
await page.goto(site);

/** The part of a reply that the page's script can read. The browser hides everything that CORS does not allow. */
interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: Json;
}

/** Sends like SDKs: with a content type and a cache header, which cause a preflight. Repeated `times`. */
async function fromPage(method: string, path: string, body?: unknown, times = 1): Promise<readonly Seen[]> {
  return page.evaluate(
    async ({ url, method, body, times }) => {
      const seen: Seen[] = [];
      for (let i = 0; i < times; i++) {
        const reply = await fetch(url, {
          method,
          headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        seen.push({
          status: reply.status,
          headers: Object.fromEntries(reply.headers),
          json: await reply.json(),
        });
      }
      return seen;
    },
    { url: `${stack.origin}/api/v1/client/${workspaceId}${path}`, method, body, times },
  );
}

async function once(method: string, path: string, body?: unknown): Promise<Seen> {
  const [seen] = await fromPage(method, path, body);
  if (seen === undefined) throw new Error('The page saw nothing');
  return seen;
}

t.test('a page of another origin can read the environment, store a response, and read errors', async (t) => {
  t.not(new URL(site).origin, stack.origin);
  const environment = await once('GET', '/environment');
  t.equal(environment.status, 200);
  t.match(environment.json.data.data.surveys, [{ id: surveyId }]);

  const response = await once('POST', '/responses', {
    surveyId,
    finished: true,
    data: { q1: 'typed in a browser' },
  });
  t.equal(response.status, 200);
  t.match(await stack.manage('GET', `/api/v1/management/responses/${response.json.data.id}`), {
    finished: true,
    data: { q1: 'typed in a browser' },
    meta: { userAgent: { os: 'Linux', device: 'desktop' } },
  });
  const refused = await once('POST', '/responses', {
    surveyId: 'cnosuchsurvey000000000000',
    finished: true,
    data: {},
  });
  t.match(refused, { status: 404, json: { code: 'not_found', details: { resource_type: 'Survey' } } });
});

t.test('limit headers on a success, and the 429 of the gateway with its body and Retry-After', async (t) => {
  const all = await fromPage('POST', '/displays', { surveyId }, 101);
  const [first] = all;
  t.match(first?.headers, {
    'x-ratelimit-limit': '100',
    'x-ratelimit-remaining': /^\d+$/,
    'x-ratelimit-reset': /^\d+$/,
    ratelimit: /client-v1-displays/,
    'ratelimit-policy': /q=100;w=31622400/,
  });
  const last = all.at(-1);
  t.equal(last?.status, 429);
  t.ok(last?.headers['x-gateway-ratelimited'], 'the page can see that the gateway refused');
  t.match(last?.headers['retry-after'], /^\d+$/);
  t.match(last?.json, { code: 'gateway_rate_limited', message: String, details: {} });
});

t.test('CORS still forbids pages to use the management API', async (t) => {
  const outcome = await page.evaluate(
    (url) => fetch(url, { headers: { 'x-api-key': 'x' } }).then(String, (error) => error.name),
    `${stack.origin}/api/v1/management/me`,
  );
  t.equal(outcome, 'TypeError', 'the browser hides the reply');
});

t.test('a page of a banned client can read the 429, although its request needs a preflight', async (t) => {
  const banned = await fetch(`http://127.0.0.1:${adminPort}/api/ban`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ subject: '127.0.0.1', kind: 'address', seconds: 60 }),
  });
  t.equal(banned.status, 200);
  // The browser has no cached preflight of this path.
  const refused = await once('PUT', '/responses/another', {});
  t.match(refused, { status: 429, json: { code: 'gateway_banned' } });
});

interface Init {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly credentials?: 'include';
}

/** What a page of the site sees of a fetch; null if the browser hides the reply. */
function fetched(url: string, init: Init): Promise<{ readonly [part: string]: Json } | null> {
  return page.evaluate(
    ({ url, init }) =>
      fetch(url, init).then(
        async (reply) => ({
          status: reply.status,
          retryAfter: reply.headers.get('retry-after'),
          limit: reply.headers.get('x-ratelimit-limit'),
          json: await reply.json(),
        }),
        () => null,
      ),
    { url, init },
  );
}

const SIMPLE: Init = { method: 'POST', headers: {}, body: 'a=b' };
const PREFLIGHTED: Init = {
  method: 'PUT',
  headers: { 'Content-Type': 'application/json', Authorization: 'Bearer a' },
  body: '{}',
};
const WITH_COOKIES = { credentials: 'include' } as const;

for (const parser of ['0', '1'])
  t.test(`replies: cors on any route, GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const upstream = await startUpstream(t);
    const { origin } = new URL(site);
    const start = async (cors: string, to: string, limit: number): Promise<string> => {
      const row = `name: all, route: "* *", identifier: ip, limit: ${limit}, window: 366d`;
      const policies = `${policyFile(row)}\n${cors}`.replace('OPTIONS *, ', '');
      const env = { GATEWAY_OWN_PARSER: parser };
      const { origin } = await startTestGateway(t, { upstream: to, policies, env });
      return `${origin}/items`;
    };
    const listed = `replies: { cors: [${origin}] }`;
    const trusted = `replies: { cors: [{ origin: "${origin}", credentials: true }] }`;
    const all = 'replies: { cors: "*" }';
    const other = 'replies: { cors: [https://app.example.org] }';
    const away = `http://127.0.0.1:${await freePort()}`;
    for (const [cors, init, isRead] of [
      [listed, {}, true],
      [listed, WITH_COOKIES, false],
      [trusted, {}, true],
      [trusted, WITH_COOKIES, true],
      [all, {}, true],
      [all, WITH_COOKIES, false],
      [other, {}, false],
      ['', {}, false],
    ] as const) {
      const limited = await start(cors, upstream.origin, 1);
      await fetch(limited);
      const broken = await start(cors, away, 100);
      for (const request of [SIMPLE, PREFLIGHTED]) {
        const what = `${cors} ${JSON.stringify({ ...request, ...init })}`;
        const denied = await fetched(limited, { ...request, ...init });
        if (isRead)
          t.match(
            denied,
            {
              status: 429,
              retryAfter: /^\d+$/,
              limit: '1',
              json: { code: 'gateway_rate_limited', message: String, details: {} },
            },
            what,
          );
        else t.equal(denied, null, what);
        const failed = await fetched(broken, { ...request, ...init });
        if (isRead) t.match(failed, { status: 502, json: { code: 'gateway_upstream_unavailable' } }, what);
        else t.equal(failed, null, what);
      }
    }
  });
