/**
 * The page to read the description on, which is Scalar. It brings its own script: it loads nothing from elsewhere, and
 * its policy allows nothing else.
 *
 * The script is a text of 4 MB in a module, and a fifth of all that a start would have to load. So the page is a small
 * application of its own, made when the first reader comes.
 */
import fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import type { Random } from '#api/ids.ts';
import { onFirstUse } from '#shared/first-use.ts';

export const DOCS_PATH = '/api/docs';
const SCRIPT_PATH = `${DOCS_PATH}/js/scalar.js`;
/** The script is part of this program, so it changes with it: a day is short enough to forget an old one. */
const SCRIPT_CACHEABLE = 'public, max-age=86400';
const hidden = { schema: { hide: true } };

export const readerRoutes: FastifyPluginAsync<{ readonly random: Random }> = async (app, { random }) => {
  /** The page is the same for everybody and shows nothing of a request, so one nonce does for this process. */
  const nonce = Buffer.from(random(16)).toString('base64');
  const policy = pagePolicy(nonce);
  let made: FastifyInstance | null = null;
  const reader = onFirstUse(async () => {
    made = await makeReader(nonce);
    return made;
  });
  app.addHook('onClose', async () => {
    await made?.close();
  });

  const ask = async (url: string): Promise<{ readonly type: string; readonly body: string }> => {
    const { statusCode, headers, body } = await (await reader()).inject(url);
    if (statusCode !== 200) throw new Error(`The page of the description has no ${url}: ${statusCode}`);
    return { type: String(headers['content-type']), body };
  };

  app.get(`${DOCS_PATH}/`, hidden, async (request, reply) => {
    const [path = ''] = request.url.split('?');
    if (!path.endsWith('/')) return reply.redirect(`${path}/`, 301);
    const { type, body } = await ask(`${DOCS_PATH}/`);
    return reply.header('content-security-policy', policy).header('content-type', type).send(body);
  });
  app.get(SCRIPT_PATH, hidden, async (_request, reply) => {
    const { type, body } = await ask(SCRIPT_PATH);
    return reply.header('cache-control', SCRIPT_CACHEABLE).header('content-type', type).send(body);
  });
};

async function makeReader(nonce: string): Promise<FastifyInstance> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const reader = fastify();
  await reader.register(scalar, {
    routePrefix: DOCS_PATH,
    configuration: {
      url: `${DOCS_PATH}/openapi.json`,
      cdn: SCRIPT_PATH,
      pageTitle: 'Floodgate API',
      nonce,
      withDefaultFonts: false,
      telemetry: false,
      showDeveloperTools: 'never',
      hideClientButton: true,
      agent: { disabled: true },
      mcp: { disabled: true },
    },
  });
  return reader;
}

/** Styles are set by script all over the page; requests go to this service only. */
function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ');
}
