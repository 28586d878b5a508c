/** Builds the import graph of a program, for tests of its layers. Type-only and dynamic imports count. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from './process.ts';

const IMPORT = /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;
const LOADED = /^(?:import|export)\s(?!type\s)[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm;

/** Maps a node to the nodes that it imports, each with one import for messages. */
export type Graph = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface Program {
  /** Paths from the project's root. */
  readonly files: readonly string[];
  /** Nodes are files. */
  readonly fileGraph: Graph;
  /** Nodes are files, with the imports that load a file: no type-only ones, and no dynamic ones. */
  readonly loadGraph: Graph;
  /**
   * Nodes are folders, and files on the top level: some of those are imported by all folders, and others import all.
   */
  readonly folderGraph: Graph;
  /** @param nodeOf the node that a file belongs to */
  graphOf(nodeOf: (file: string) => string): Graph;
  importsOf(file: string): readonly string[];
  /** The files that import a package. */
  holdersOf(packageName: string): readonly string[];
}

/** @param root a folder at the top of the project, such as `api` */
export function readProgram(root: string): Program {
  const texts = new Map(
    globSync(`${root}/**/*.ts`, { cwd: projectRoot })
      .sort()
      .map((file) => [file, readFileSync(join(projectRoot, file), 'utf8')]),
  );
  const files = [...texts.keys()];
  const importsIn = (file: string, pattern: RegExp): readonly string[] =>
    [...(texts.get(file) ?? '').matchAll(pattern)].flatMap(([, from, bare, dynamic]) => {
      const specifier = from ?? bare ?? dynamic ?? '';
      const target = specifier.startsWith('#') ? specifier.slice(1) : join(dirname(file), specifier);
      const isOurs = specifier.startsWith(`#${root}/`) || specifier.startsWith('.');
      return isOurs && target.startsWith(`${root}/`) ? [target] : [];
    });
  const importsOf = (file: string): readonly string[] => importsIn(file, IMPORT);
  const folderOf = (file: string): string => (dirname(file) === root ? file : dirname(file));
  return {
    files,
    fileGraph: graphOf(files, importsOf, (file) => file),
    loadGraph: graphOf(
      files,
      (file) => importsIn(file, LOADED),
      (file) => file,
    ),
    folderGraph: graphOf(files, importsOf, folderOf),
    graphOf: (nodeOf) => graphOf(files, importsOf, nodeOf),
    importsOf,
    holdersOf: (name) => files.filter((file) => texts.get(file)?.includes(`from '${name}'`)),
  };
}

function graphOf(
  files: readonly string[],
  importsOf: (file: string) => readonly string[],
  nodeOf: (file: string) => string,
): Graph {
  const graph = new Map<string, Map<string, string>>();
  for (const file of files) {
    const from = nodeOf(file);
    const edges = graph.get(from) ?? new Map<string, string>();
    graph.set(from, edges);
    for (const target of importsOf(file)) {
      const to = nodeOf(target);
      if (to !== from) edges.set(to, `${file} imports ${target}`);
    }
  }
  return graph;
}

/** @returns the imports on a path from one node back to it; null if there is none */
export function loopThrough(graph: Graph, start: string): readonly string[] | null {
  const ways: { readonly node: string; readonly lines: readonly string[] }[] = [{ node: start, lines: [] }];
  const seen = new Set<string>();
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    for (const [next, line] of graph.get(way.node) ?? []) {
      const lines = [...way.lines, line];
      if (next === start) return lines;
      if (!seen.has(next)) ways.push({ node: next, lines });
      seen.add(next);
    }
  }
  return null;
}

/** @returns the files of the longest chain of imports that begins at a file; the graph has no loop */
export function longestChain(graph: Graph, start: string): readonly string[] {
  const known = new Map<string, readonly string[]>();
  const chainOf = (file: string): readonly string[] => {
    const found = known.get(file);
    if (found !== undefined) return found;
    let longest: readonly string[] = [];
    for (const next of graph.get(file)?.keys() ?? []) {
      const chain = chainOf(next);
      if (chain.length > longest.length) longest = chain;
    }
    const chain = [file, ...longest];
    known.set(file, chain);
    return chain;
  };
  return chainOf(start);
}
