/** A YAML or JSON file as a tree of unknown values, each with its line. */
import { isNode, LineCounter, parseAllDocuments } from 'yaml';
import { ImportError } from './imported.ts';

type Path = readonly (string | number)[];

const DOCUMENTS_MAX = 1000;
/** Limits aliases, so that a short file cannot expand to gigabytes. */
const ALIASES_MAX = 100;

export class Tree {
  readonly value: unknown;
  readonly #path: Path;
  readonly #lineOf: (path: Path) => number;

  constructor(value: unknown, lineOf: (path: Path) => number, path: Path = []) {
    this.value = value;
    this.#lineOf = lineOf;
    this.#path = path;
  }

  /** Line number from 1. For a missing value, the line of its nearest existing owner. */
  get line(): number {
    return this.#lineOf(this.#path);
  }

  get isPresent(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** Returns a text, or a number or boolean as text; null for anything else. */
  get text(): string | null {
    const { value } = this;
    if (typeof value === 'string') return value;
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
  }

  /** Returns a number, or the number that a text contains; null for anything else. */
  get number(): number | null {
    const { text } = this;
    if (text === null || text.trim() === '') return null;
    const number = Number(text);
    return Number.isFinite(number) ? number : null;
  }

  get isTrue(): boolean {
    return this.text === 'true';
  }

  at(...keys: readonly string[]): Tree {
    let value = this.value;
    for (const key of keys) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    return new Tree(value, this.#lineOf, [...this.#path, ...keys]);
  }

  /** Returns the items of a list; empty for anything else. */
  items(): Tree[] {
    return Array.isArray(this.value)
      ? this.value.map((value: unknown, i) => new Tree(value, this.#lineOf, [...this.#path, i]))
      : [];
  }
}

/** @throws ImportError with the line of the first mistake */
export function readTrees(text: string): Tree[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, logLevel: 'error', uniqueKeys: true });
  if (!Array.isArray(documents)) return [];
  if (documents.length > DOCUMENTS_MAX)
    throw new ImportError(`it has more than ${DOCUMENTS_MAX} documents; split it`);
  return documents.map((document) => {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line } = lines.linePos(error.pos[0]);
      throw new ImportError(`line ${line} is not valid YAML: ${error.message.split('\n')[0]}`);
    }
    const lineOf = (path: Path): number => {
      for (let length = path.length; length >= 0; length--) {
        const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
        if (isNode(node) && node.range) return Math.max(1, lines.linePos(node.range[0]).line);
      }
      return 1;
    };
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: ALIASES_MAX });
    } catch (cause) {
      throw new ImportError(`its aliases cannot be followed: ${(cause as Error).message}`, { cause });
    }
    return new Tree(value, lineOf);
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
