/**
 * Shows the description with Swagger UI. The script and style come from this server: the page loads nothing from
 * elsewhere, and its policy allows nothing else.
 *
 * The script has 1.7 MB, so the files are read for the first reader.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { FastifyPluginAsync } from 'fastify';
import type { Random } from '#api/ids.ts';
import { onFirstUse } from '#shared/first-use.ts';

export const DOCS_PATH = '/api/docs';
const SCRIPT_PATH = `${DOCS_PATH}/js/swagger-ui.js`;
const STYLE_PATH = `${DOCS_PATH}/css/swagger-ui.css`;
/** The files change with this program, so a browser may keep them for a day. */
const CACHEABLE = 'public, max-age=86400';
const hidden = { schema: { hide: true } };

const FILES = [
  { path: SCRIPT_PATH, file: 'swagger-ui-dist/swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  { path: STYLE_PATH, file: 'swagger-ui-dist/swagger-ui.css', type: 'text/css; charset=utf-8' },
];

/** @see https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration/ */
const OPTIONS = {
  url: `${DOCS_PATH}/openapi.json`,
  dom_id: '#page',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  // Otherwise Swagger UI sends the description to a service that validates it.
  validatorUrl: null,
};

export const readerRoutes: FastifyPluginAsync<{ readonly random: Random }> = async (app, { random }) => {
  /**
   * The page is the same for everybody and contains nothing from the request, so one nonce for each process is enough.
   */
  const nonce = Buffer.from(random(16)).toString('base64');
  const policy = pagePolicy(nonce);
  const html = page(nonce);

  app.get(`${DOCS_PATH}/`, hidden, async (request, reply) => {
    const [path = ''] = request.url.split('?');
    if (!path.endsWith('/')) return reply.redirect(`${path}/`, 301);
    return reply.header('content-security-policy', policy).type('text/html; charset=utf-8').send(html);
  });
  for (const { path, file, type } of FILES) {
    const content = onFirstUse(() => readFile(fileURLToPath(import.meta.resolve(file))));
    app.get(path, hidden, async (_request, reply) => {
      return reply
        .header('cache-control', CACHEABLE)
        .type(type)
        .send(await content());
    });
  }
};

function page(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Floodgate API</title>
<link rel="stylesheet" href="${STYLE_PATH}">
<body>
<div id="page"></div>
<script nonce="${nonce}" src="${SCRIPT_PATH}"></script>
<script nonce="${nonce}">SwaggerUIBundle(${JSON.stringify(OPTIONS)});</script>
</body>
</html>
`;
}

/** Allows inline styles, because the page's script sets styles in many places. Requests go to this service only. */
function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ');
}
