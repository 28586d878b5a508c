/** Parses the YAML of a policy file and finds the position of each value in the text. */
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLParseError,
} from 'yaml';
import type { Path } from '#gateway/policy/problems.ts';

export type ReportAt = (offset: number, message: string, fix: string) => void;

/** Maximum number of nodes that aliases may expand to, so that a short file cannot become gigabytes. */
const ALIASES_MAX = 100;

/** Reports all duplicate keys, but only the first other error, because later ones usually follow from it. */
export function reportSyntax(errors: readonly YAMLParseError[], text: string, at: ReportAt): void {
  const duplicates = errors.filter(({ code }) => code === 'DUPLICATE_KEY');
  for (const { pos } of duplicates) at(pos[0], `${keyAt(text, pos[0])} appears twice`, 'keep one');
  const [first] = errors.filter(({ code }) => code !== 'DUPLICATE_KEY');
  if (first !== undefined) {
    const [what, fix] = explained(first, text);
    at(first.pos[0], `not valid YAML: ${what}`, fix);
  }
}

function explained(error: YAMLParseError, text: string): readonly [what: string, fix: string] {
  const [offset] = error.pos;
  const lineBegin = text.lastIndexOf('\n', offset - 1) + 1;
  const isTabbed = /^ *\t/.test(text.slice(lineBegin));
  const [what, fix] = SYNTAX_FIXES[isTabbed ? 'TAB_AS_INDENT' : error.code] ?? [null, 'correct it here'];
  return [what ?? bare(error), fix];
}

/** A null message means that the parser's own message is used. */
const SYNTAX_FIXES: Readonly<Partial<Record<ErrorCode, readonly [what: string | null, fix: string]>>> = {
  TAB_AS_INDENT: ['tabs cannot be used for indentation', 'use spaces'],
  RESOURCE_EXHAUSTION: ['brackets are nested too deeply', 'close them'],
  MULTIPLE_DOCS: ['a second document begins here', 'keep one, without ---'],
  BLOCK_AS_IMPLICIT_KEY: [
    'a second "key: value" within a value',
    'put a value with a colon in quotes, and give the keys of one entry the same indentation',
  ],
  MULTILINE_IMPLICIT_KEY: ['this line is not "key: value"', 'write a colon and a space'],
  MISSING_CHAR: [null, 'close what is open, and give the keys of one entry the same indentation'],
  BAD_INDENT: [null, 'give lines of one level the same indentation'],
  BAD_ALIAS: ['an alias without a name', 'put a value that begins with * in quotes'],
  BAD_SCALAR_START: [null, 'put the value in quotes'],
  UNEXPECTED_TOKEN: [null, 'put a value that begins with {, [, " or \' in quotes as a whole'],
};

/** Removes the position and the excerpt that the parser appends to its message. */
function bare({ message }: Error): string {
  return message.replace(/ at line \d+, column \d+:[\s\S]*$/, '');
}

function keyAt(text: string, offset: number): string {
  return /^[^\s:]*/.exec(text.slice(offset))?.[0] ?? 'the key';
}

/**
 * Converts the document to plain data. If an alias is wrong or expands too far, or a map is merged, reports it and returns
 * null.
 */
export function plainValue(document: Document.Parsed, at: ReportAt): unknown {
  const anchored = new Map<string, Node>();
  let firstAlias: Node | null = null;
  let isSound = true;
  visit(document, {
    // Merges within merges could take forever to expand.
    Pair(_key, { key }) {
      if (!isScalar(key) || key.value !== '<<') return undefined;
      isSound = false;
      at(startOf(key), '<< does not merge values here', 'write the keys out');
      return visit.BREAK;
    },
    Node(_key, node, ancestors) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
        return undefined;
      }
      firstAlias ??= node;
      const target = anchored.get(node.source);
      if (target !== undefined && !ancestors.includes(target)) return undefined;
      isSound = false;
      at(
        startOf(node),
        `*${node.source} has no anchor &${node.source} that ends above it`,
        'write the value out, or put it in quotes',
      );
      return visit.BREAK;
    },
  });
  if (!isSound) return null;
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    // The aliases expand to too many nodes. The parser gives neither a position nor a separate error type.
    if (!(error instanceof ReferenceError)) throw error;
    at(startOf(firstAlias), 'the aliases of this file expand to too many values', 'write the values out');
    return null;
  }
}

/** Returns the offset of the value or the key at a path. If it is missing, returns the offset of its owner. */
export function offsetOf(contents: unknown, path: Path, point: 'value' | 'key'): number {
  let node = contents;
  let offset = startOf(node);
  for (const [depth, step] of path.entries()) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) return offset;
      const wantsKey = point === 'key' && depth === path.length - 1;
      // An empty value has no position of its own.
      const isEmpty = isScalar(pair.value) && pair.value.value === null;
      offset = startOf(wantsKey || isEmpty ? pair.key : pair.value);
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = startOf(node);
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}
/** Positions in a text without syntax errors. Lines and columns start at 1. */
export function placesIn(
  text: string,
): (path: Path, point: 'value' | 'key') => { readonly line: number; readonly column: number } {
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, logLevel: 'error' });
  return (path, point) => {
    const { line, col } = lines.linePos(offsetOf(contents, path, point));
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
}
