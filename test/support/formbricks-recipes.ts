/** The recipes for Formbricks: the Compose files of the examples, and the commands with which the page checks them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parse } from 'yaml';
import type { Page } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { type Formbricks, pathOf } from './formbricks-stand-in.ts';
import { BEHIND_PROXY, type Owner, startTestGateway, type TestGateway } from './gateway.ts';
import { type LabelledProxy, startLabelledProxy } from './labelled-proxy.ts';
import { freePort } from './ports.ts';
import { projectRoot } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';

interface Recipe {
  readonly file: string;
  /** Heading of its section on the page. */
  readonly heading: string;
}

export const RECIPES = {
  compose: { file: 'examples/formbricks/compose.yaml', heading: '## With Docker Compose' },
  traefik: {
    file: 'examples/formbricks/traefik.yaml',
    heading: '## With the Traefik of the one-click installation',
  },
  proxied: { file: 'examples/formbricks/behind-a-proxy.yaml', heading: '## Behind NGINX or Caddy' },
} as const;

interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes: readonly string[];
  readonly depends_on: readonly string[];
  readonly ports?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly networks?: readonly string[] | Readonly<Record<string, unknown>>;
}

interface ComposeFile {
  readonly services: Readonly<Record<'formbricks' | 'gateway' | 'gateway-redis', Service>>;
  readonly volumes?: Readonly<Record<string, unknown>>;
  readonly networks?: Readonly<
    Record<string, { readonly ipam?: { readonly config: readonly { readonly subnet: string }[] } }>
  >;
}

/** Compose's own tag: an empty list replaces the one of the first file. */
const RESET = { tag: '!reset', collection: 'seq', identify: () => false } as const;

export function readRecipe(file: string): ComposeFile {
  const text = readFileSync(join(projectRoot, file), 'utf8');
  return parse(text, { merge: true, customTags: [RESET] });
}

/**
 * Starts a gateway with the variables of the recipe, except for addresses. Its windows never end.
 *
 * @param env addresses of this test
 */
export function runRecipe(
  owner: Owner,
  { file }: Recipe,
  formbricks: Formbricks,
  env: Readonly<Record<string, string>> = {},
): Promise<TestGateway> {
  const { GATEWAY_REDIS_URL, GATEWAY_UPSTREAM, ...own } = readRecipe(file).services.gateway.environment;
  const begun = Date.now();
  return startTestGateway(owner, { upstream: formbricks, env: { ...own, ...env }, clock: () => begun });
}

export function hopCountOf({ file }: Recipe): number {
  return Number(readRecipe(file).services.formbricks.environment.TRUSTED_PROXY_HOP_COUNT);
}

/** Labels of the one-click installation, of both services, as it writes them for releases 5.0 to 5.4 without HSTS. */
const INSTALLED_LABELS = {
  'traefik.http.routers.formbricks.rule': 'Host(`forms.example.org`)',
  'traefik.http.routers.formbricks_http.rule': 'Host(`forms.example.org`)',
  'traefik.http.routers.feedback-records-token.rule': 'PathPrefix(`/api/v3/feedbackRecords/token`)',
  'traefik.http.routers.feedback-records-v3.rule': 'PathPrefix(`/api/v3/feedbackRecords`)',
  'traefik.http.routers.feedback-records-v3.middlewares':
    'feedback-records-auth,feedback-records-v3-rewrite,feedback-records-hub-headers',
  'traefik.http.routers.feedback-records-sdk.rule': 'PathPrefix(`/v1/feedback-records`)',
  'traefik.http.routers.feedback-records-sdk.middlewares':
    'feedback-records-auth,feedback-records-hub-headers',
};

/** Returns the middlewares that the page adds to each entry point of Traefik. */
export function entryPointsOf(page: Page): Readonly<Record<string, readonly string[]>> {
  const block = page.blocks.find(({ text }) => text.startsWith('entryPoints:'))?.text ?? '';
  const { entryPoints } = parse(block) as {
    entryPoints: Record<string, { http: { middlewares: readonly string[] } }>;
  };
  return Object.fromEntries(Object.entries(entryPoints).map(([name, { http }]) => [name, http.middlewares]));
}

/** Starts a stand-in for Traefik that reads the labels of the recipe, and the gateway that it asks. */
export async function startTraefikRecipe(
  owner: Owner,
  formbricks: Formbricks,
  page: Page,
): Promise<LabelledProxy & { readonly asked: TestGateway }> {
  const decision = await freePort();
  const asked = await runRecipe(owner, RECIPES.traefik, formbricks, {
    GATEWAY_DECISION_PORT: String(decision),
    GATEWAY_DECISION_HOST: '127.0.0.1',
    ...BEHIND_PROXY,
  });
  const proxy = await startLabelledProxy(
    owner,
    {
      ...INSTALLED_LABELS,
      ...readRecipe(RECIPES.traefik.file).services.formbricks.labels,
      // The test asks an address of this machine.
      'traefik.http.routers.formbricks.rule': 'PathPrefix(`/`)',
      'traefik.http.routers.formbricks_http.rule': 'PathPrefix(`/`)',
    },
    { forwardAuth: `http://127.0.0.1:${decision}`, service: formbricks.origin },
    entryPointsOf(page).websecure,
  );
  return { ...proxy, asked };
}

/** Addresses of a test, which replace those on the page. */
export interface Addresses {
  readonly site: string;
  /** An address that must be closed. */
  readonly closed: string;
}

/** Returns the lines of a recipe that show that it works, in the order of the page. */
export function checksOf(page: Page, { heading }: Recipe, { site, closed }: Addresses): readonly string[] {
  const begin = page.text.indexOf(`\n${heading}\n`);
  const end = page.text.indexOf('\n## ', begin + 1);
  const [, , fence = ''] = page.text.slice(begin, end).split(/^```sh\n/m);
  const [block = ''] = fence.split('\n```');
  return block
    .trim()
    .split('\n')
    .map((line) =>
      line
        .replace(/http:\/\/[\w.]+:(?:3000|8080)(?=$| \|\|)/, closed)
        .replace(/https?:\/\/(?:localhost:8080|forms\.example\.org)/, site),
    );
}

/** Runs the lines of a recipe. Their output equals that of the page. */
export async function linesWork(t: Test, lines: readonly string[]): Promise<void> {
  const shell = startShell(t, temporaryFolder(t));
  const [logins = '', closedRoute = '', closedPort = ''] = lines;
  t.equal(lines.length, 3);
  t.equal(await shell.run(logins), `${'401 \n'.repeat(5)}429 true\n`);
  t.equal(await shell.run(closedRoute), '403\n');
  t.equal(await shell.run(closedPort), 'closed\n');
}

const SPELLINGS = [
  '/api/auth/sign-in/email',
  '/api//auth/sign-in/email/',
  '/api/auth/%73ign-in/email',
  '/api/auth/sign-in/./email',
  '/api/auth/x/../sign-in/email?a=b',
];

/**
 * Logins from one address, each with another spelling of the path, claimed address, cookie and user.
 *
 * @returns how many got which status; `own` means that the gateway has refused them
 */
export async function floodLogins(
  sites: readonly string[],
  times: number,
): Promise<Readonly<Record<string, number>>> {
  const results = await Promise.all(
    Array.from({ length: times }, async (_, i) => {
      const { status, headers } = await fetch(
        `${sites[i % sites.length]}${SPELLINGS[i % SPELLINGS.length]}`,
        {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'x-forwarded-for': `198.51.100.${i % 256}`,
            'x-real-ip': `198.51.100.${i % 256}`,
            'x-formbricks-client-ip': `198.51.100.${i % 256}`,
            cookie: `session=${i}`,
          },
          body: JSON.stringify({ email: `user${i}@example.org`, password: 'guess' }),
        },
      );
      return headers.get('x-gateway-ratelimited') === 'true' ? `own ${status}` : String(status);
    }),
  );
  return Object.fromEntries(
    Map.groupBy(results, (result) => result)
      .entries()
      .map(([result, all]) => [result, all.length]),
  );
}

/** Checks that Formbricks saw the client's address, and none of its requests to the routes that check keys. */
export function isReachedOnlyBy(client: string, { seen }: Formbricks): boolean {
  return seen.every((request) => request.client === client && !/(?:envoy|traefik)-auth/.test(request.url));
}

/** Returns the number of login requests that reached Formbricks, in any spelling. */
export function loginsAt({ seen }: Formbricks): number {
  return seen.filter(({ url }) => pathOf(url) === '/api/auth/sign-in/email').length;
}
