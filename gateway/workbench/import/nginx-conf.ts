/** The syntax of an NGINX configuration: directives with words, and blocks of directives. Includes are not followed. */
import { ImportError } from './imported.ts';

export interface Directive {
  readonly name: string;
  /** Words of the directive without their quotes. */
  readonly args: readonly string[];
  readonly line: number;
  /** Directives in the block; null if the directive ends with a semicolon. */
  readonly block: readonly Directive[] | null;
}

interface Token {
  readonly kind: 'word' | '{' | '}' | ';';
  readonly text: string;
  readonly line: number;
}

const DEPTH_MAX = 64;
const SPECIAL = new Set(['{', '}', ';']);

/** @throws ImportError with the line of the first mistake */
export function parseNginx(text: string): Directive[] {
  return new Reader(text).block(0);
}

class Reader {
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  /** @param depth 0 for the file itself, which ends without a brace */
  block(depth: number): Directive[] {
    if (depth > DEPTH_MAX) throw new ImportError(`line ${this.#line}: blocks are nested too deeply`);
    const opened = this.#line;
    const directives: Directive[] = [];
    for (;;) {
      const token = this.#next();
      if (token === null) {
        if (depth === 0) return directives;
        throw new ImportError(`the block that begins in line ${opened} has no }; close it`);
      }
      if (token.kind === '}') {
        if (depth > 0) return directives;
        throw new ImportError(`line ${token.line}: } closes nothing; remove it`);
      }
      if (token.kind !== 'word')
        throw new ImportError(`line ${token.line}: a directive must stand before ${token.kind}`);
      directives.push(this.#directive(token, depth));
    }
  }

  #directive({ text: name, line }: Token, depth: number): Directive {
    const args: string[] = [];
    for (;;) {
      const token = this.#next();
      if (token === null || token.kind === '}')
        throw new ImportError(`line ${line}: ${name} has no end; write ; behind it`);
      if (token.kind === ';') return { name, args, line, block: null };
      if (token.kind === '{') {
        // The block contains Lua.
        if (name.endsWith('_by_lua_block')) {
          this.#skipBraces(line);
          return { name, args, line, block: [] };
        }
        return { name, args, line, block: this.block(depth + 1) };
      }
      args.push(token.text);
    }
  }

  #next(): Token | null {
    this.#skipBlanks();
    const character = this.#text[this.#at];
    const line = this.#line;
    if (character === undefined) return null;
    if (SPECIAL.has(character)) {
      this.#at++;
      return { kind: character as '{' | '}' | ';', text: character, line };
    }
    return {
      kind: 'word',
      text: character === '"' || character === "'" ? this.#quoted(character) : this.#word(),
      line,
    };
  }

  #skipBlanks(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at];
      if (character === '\n') this.#line++;
      else if (character === '#') {
        const end = this.#text.indexOf('\n', this.#at);
        this.#at = (end < 0 ? this.#text.length : end) - 1;
      } else if (!/\s/.test(character ?? '')) return;
    }
  }

  #quoted(quote: string): string {
    const line = this.#line;
    let text = '';
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at] ?? '';
      if (character === quote) {
        this.#at++;
        return text;
      }
      if (character === '\n') this.#line++;
      const next = this.#text[this.#at + 1] ?? '';
      // Before any other character a backslash is literal, for example in a regular expression.
      if (character === '\\' && (next === quote || next === '\\')) {
        text += next;
        this.#at++;
      } else text += character;
    }
    throw new ImportError(`line ${line}: a quote has no end; close it`);
  }

  #word(): string {
    const begin = this.#at;
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at] ?? '';
      if (character === '\\') this.#at++;
      // ${name} is part of the word; other braces are part of it only within quotes.
      else if (character === '$' && this.#text[this.#at + 1] === '{') {
        const end = this.#text.indexOf('}', this.#at);
        if (end > 0) this.#at = end;
      } else if (/[\s;{]/.test(character)) break;
    }
    return this.#text.slice(begin, this.#at);
  }

  /** Skips to the closing brace of the block. Braces in strings and comments of Lua do not count. */
  #skipBraces(line: number): void {
    const piece =
      /--\[\[[\s\S]*?\]\]|--[^\n]*|\[\[[\s\S]*?\]\]|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|[{}]/g;
    piece.lastIndex = this.#at;
    let depth = 1;
    for (let found = piece.exec(this.#text); found !== null; found = piece.exec(this.#text)) {
      if (found[0] === '{') depth++;
      if (found[0] === '}') depth--;
      if (depth > 0) continue;
      this.#line += this.#text.slice(this.#at, piece.lastIndex).split('\n').length - 1;
      this.#at = piece.lastIndex;
      return;
    }
    throw new ImportError(`the block that begins in line ${line} has no }; close it`);
  }
}
