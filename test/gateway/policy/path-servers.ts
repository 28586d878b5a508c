/** How kinds of servers read a path, written apart from the gateway's own code. */

type Read = (path: string) => readonly string[];

const decode = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));

/** Decodes what cannot change where segments begin, as servers do that keep an encoded slash in its segment. */
const decodeInside = (text: string): string => text.replace(/%(?!2f|25)[0-9a-f]{2}/gi, decode);

const withoutParameters = (text: string): string => text.replace(/;[^/]*/g, '');

/** Returns segments, without the one that a slash at the end adds. */
function segments(text: string): string[] {
  const list = text.slice(1).split('/');
  if (list.length > 1 && list.at(-1) === '') list.pop();
  return list;
}

function merge(list: readonly string[]): string[] {
  const full = list.filter((segment) => segment !== '');
  return full.length === 0 ? [''] : full;
}

function resolve(list: readonly string[]): string[] {
  const kept: string[] = [];
  for (const segment of list) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return kept;
}

/** Normalizes as Apache, NGINX and Go do: slashes first. */
const clean = (text: string): string[] => merge(resolve(merge(segments(text))));

export const SERVERS: Readonly<Record<string, Read>> = {
  'Express: each segment is decoded': (path) => segments(path).map(decode),
  'Rails: slashes are merged': (path) => merge(segments(path)).map(decode),
  'WSGI and PHP: the path is decoded': (path) => segments(decode(path)),
  'NGINX: decoded, merged, resolved': (path) => clean(decode(path)),
  'Go: merged, resolved, then decoded': (path) => clean(decodeInside(path)).map(decode),
  'Windows: a backslash is a slash': (path) => clean(decode(path).replaceAll('\\', '/')),
  'Tomcat: without parameters, decoded, merged, resolved': (path) => clean(decode(withoutParameters(path))),
  'Tomcat with encoded slashes passed through': (path) =>
    clean(decodeInside(withoutParameters(path))).map(decode),
  'Tomcat with backslashes allowed': (path) => clean(decode(withoutParameters(path)).replaceAll('\\', '/')),
  'Jetty: resolved before slashes are merged': (path) =>
    merge(resolve(segments(decode(withoutParameters(path))))),
  'Spring: parameters are removed from what is decoded': (path) => clean(withoutParameters(decode(path))),
  'new URL() of Node: what follows two slashes is a host': (path) =>
    segments(path.replace(/^\/{2,}[^/]+/, '') || '/').map(decode),
  'parse_url() of PHP, then decoded, merged': (path) =>
    merge(segments(decode(path.replace(/^\/\/[^/]+/, '') || '/'))),
  'decoded twice': (path) => clean(decode(decode(path))),
  'decoded twice, not resolved': (path) => segments(decode(decode(path))),
  'decoded twice, a backslash is a slash': (path) => clean(decode(decode(path)).replaceAll('\\', '/')),
};
