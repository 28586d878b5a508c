/** Paths that servers read in different ways. */
import { fc } from './fast-check.ts';
import { SEED } from './seed.ts';

/** Arbitrary paths, of all pieces on which servers differ. */
export const oddPath = fc
  .array(
    fc.constantFrom(
      ...[
        '/',
        '//',
        '/',
        '.',
        '..',
        '/..',
        '/../',
        '/./',
        ';',
        '..;',
        ';x',
        '%2e',
        '%2E',
        '%2f',
        '%2F',
        '%5c',
      ],
      ...['%25', '%252e', '%252f', '%255c', '%253b', '%3B', '%61', '%2561', 'a', 'b', 'a', '%40', '%7E'],
    ),
    { maxLength: 14 },
  )
  .map((parts) => `/${parts.join('')}`);

/** Paths from real clients, and from lists of attacks. */
const KNOWN: readonly string[] = [
  ...[
    '/',
    '/docs',
    '/docs/',
    '/docs//',
    '//docs',
    '//x/docs',
    '///x/docs',
    '/%7Euser/',
    '/%6dail',
    '/a.b/...',
    '/a/./b',
    '/a/../b/',
  ],
  ...['/@scope%2fname', '/api/v4/projects/group%2Fname', '/api/queues/%2F/q', '/dav/50%25de.txt', '/100%25'],
  ...['/app;jsessionid=1/me', '/a;v=1', '/a%3Bb', '/..;/admin', '/a/..;/b', '/a/.;/b', '/a/..;x=y/b', '/;/a'],
  ...[
    '/a/..%2fb',
    '/a/..%2F..%2F',
    '/a/%2e%2e%2fb',
    '/a/%2e%2e%5cb',
    '/a%5Cb',
    '/a/..%5cb',
    '/a%2F%2Fb',
    '/a%2F',
  ],
  ...[
    '/a/%252e%252e%252fb',
    '/a%252Fb',
    '/%2561dmin',
    '/a/%252e%252e/b',
    '/a%255Cb',
    '/a%253Bx/b',
    '/a//..%2Fb',
  ],
  ...[
    '/a//../b',
    '/a//..;/b',
    '/a;x%2F../b',
    '/a%3b/../b',
    '/p%2Fq;x%2F..',
    '/a%2F;b/c',
    '/%2e%2e%2fa',
    '/a/%2e;/b',
  ],
];

/** Returns the known ones, and others at random. */
export function oddPaths(count: number): readonly string[] {
  return [...KNOWN, ...fc.sample(oddPath, { numRuns: count, seed: SEED })];
}
