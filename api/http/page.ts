/**
 * The frame of every page for people: one style for light and dark, wide and narrow, without scripts. A page runs
 * nothing, loads nothing and cannot be framed; its forms are sent to this server.
 */
import type { FastifyReply } from 'fastify';
import { escapeHtml, sourceOf } from '#shared/page.ts';
import { style } from './page-style.ts';

/** The style is part of the page, so its hash is the only one that is allowed. */
const POLICY = [
  "default-src 'none'",
  `style-src ${sourceOf(style)}`,
  'img-src data:',
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** The icon: a closed gate over water. It is part of the page, because browsers would request one otherwise. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#2768ab"/><path d="M4 3v7M8 3v7M12 3v7M3 4h10" stroke="#fff" stroke-width="1.5"/><path d="M2 13q2-2 4 0t4 0 4 0" fill="none" stroke="#fff" stroke-width="1.5"/></svg>',
)}`;

interface PageOptions {
  /** Whether the page is wide, for tables. Forms and messages are narrow. */
  readonly isWide?: boolean;
}

/**
 * @param title text
 * @param parts HTML
 */
export function sendPage(
  reply: FastifyReply,
  status: number,
  title: string,
  parts: readonly string[],
  { isWide = false }: PageOptions = {},
): FastifyReply {
  return (
    reply
      .code(status)
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      // The address of some pages carries the token of a link.
      .header('referrer-policy', 'no-referrer')
      .serializer(String)
      .send(pageOf(escapeHtml(title), parts, reply.server.basePath, isWide))
  );
}

function pageOf(title: string, parts: readonly string[], basePath: string, isWide: boolean): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Floodgate</title>
<link rel="icon" href="${ICON}">
<style>${style}</style>
</head>
<body>
<header><a href="${basePath}/">Floodgate</a></header>
<main${isWide ? ' class="wide"' : ''}>
<h1>${title}</h1>
${parts.join('\n')}
</main>
</body>
</html>
`;
}

/** Writes a message that screen readers read at once. @param text HTML */
export function alert(text: string): string {
  return `<p class="bad" role="alert">${text}</p>`;
}

/** Writes a message that something worked. @param text HTML */
export function notice(text: string): string {
  return `<p class="good" role="status">${text}</p>`;
}

/** Links to the next steps: address and text of each. */
export function links(entries: readonly (readonly [href: string, text: string])[]): string {
  const items = entries.map(
    ([href, text]) => `<li><a href="${escapeHtml(href)}">${escapeHtml(text)}</a></li>`,
  );
  return `<ul class="links">${items.join('')}</ul>`;
}
