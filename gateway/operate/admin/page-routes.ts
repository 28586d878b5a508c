/**
 * The page for operators: static files. It has the style of all pages of this project. Its data comes from the admin API.
 */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { baseStyle } from '#shared/page.ts';

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

interface PageFile {
  readonly content: Buffer;
  readonly type: string;
  readonly etag: string;
}

const FOLDER = join(import.meta.dirname, 'page');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** @returns null if the page has no such file */
async function pageFile(name: string): Promise<PageFile | null> {
  const type = TYPES[extname(name)];
  if (type === undefined || basename(name) !== name) return null;
  const own = await readFile(join(FOLDER, name)).catch(() => null);
  if (own === null) return null;
  const content = type === TYPES['.css'] ? Buffer.concat([Buffer.from(baseStyle), own]) : own;
  return { content, type, etag: `"${hash('sha256', content).slice(0, 16)}"` };
}
