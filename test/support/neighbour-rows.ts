/**
 * The programs that the tests of test/system/neighbours run the gateway with. The runner reads from here what a file
 * needs, and docs/neighbours.md has these rows.
 */
import type { Program } from '#test/runner/servers.ts';

export interface NeighbourRow {
  /** Name of the test in test/system/neighbours, without its ending. */
  readonly file: string;
  readonly is: 'application' | 'client';
  /** For readers. */
  readonly name: string;
  /** Debian programs that the file starts. */
  readonly programs: readonly Program[];
  /** Packages of npm with exact versions, which the file installs. */
  readonly packages?: readonly string[];
  /** What the client does: "lists folders, follows redirects". */
  readonly tried: string;
}

export const NEIGHBOURS: readonly NeighbourRow[] = [
  {
    file: 'nginx',
    is: 'application',
    name: 'NGINX, static files',
    programs: ['nginx'],
    tried: 'a folder without its slash, a folder with its list, ranges, conditional requests',
  },
  {
    file: 'interim',
    is: 'application',
    name: 'Puma, Go and Node, with early hints',
    programs: ['puma', 'go', 'curl'],
    tried: '102 and 103 before the reply, read by curl and by Node; none for HTTP/1.0',
  },
  {
    file: 'git',
    is: 'application',
    name: 'git http-backend behind Apache httpd',
    programs: ['git', 'apache2', 'curl'],
    tried: 'push with a length and in chunks, clone, shallow clone, fetch, `Expect: 100-continue`',
  },
];

/** @param file path of a test in test/system/neighbours */
export function rowOf(file: string): NeighbourRow | undefined {
  return NEIGHBOURS.find(({ file: name }) => file.endsWith(`/${name}.test.ts`));
}

/** Returns the packages of npm that a test installs. */
export function npmPackagesOf(file: string): readonly string[] {
  return rowOf(file)?.packages ?? [];
}
