/** The page for operators: static files, read when somebody first asks. What they show comes from the admin API. */
import type { FastifyInstance, FastifyReply } from 'fastify';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

export async function pageRoutes(app: FastifyInstance): Promise<void> {
  const send = async (
    name: string,
    ifNoneMatch: string | undefined,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const { pageFile } = await import('./page-files.ts');
    const file = await pageFile(name);
    if (file === null) return reply.code(404).send({ message: 'the page has no such file' });
    reply.headers({
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-cache',
      etag: file.etag,
    });
    if (ifNoneMatch === file.etag) return reply.code(304).send();
    return reply.type(file.type).send(file.content);
  };
  app.get('/', async ({ headers }, reply) => send('index.html', headers['if-none-match'], reply));
  app.get<{ Params: { file: string } }>('/page/:file', async ({ headers, params }, reply) =>
    send(params.file, headers['if-none-match'], reply),
  );
}
