/** Converts the rule of a Traefik router to the requests that it matches. */
import {
  exactPattern,
  expressionPaths,
  narrower,
  prefixNotes,
  prefixPattern,
  type RequestSet,
} from './path-pattern.ts';

export interface RuleRequests {
  readonly sets: readonly RequestSet[];
  readonly notes: readonly string[];
}

/** The rule is malformed, or no route matches the same requests. */
export class RuleError extends Error {}

const SETS_MAX = 64;
const DEPTH_MAX = 32;
const EVERYTHING: RequestSet = { methods: null, path: '*' };

/** @throws RuleError with the reason */
export function readRule(rule: string): RuleRequests {
  const reader = new RuleReader(rule);
  const sets = reader.whole();
  if (sets.length === 0) throw new RuleError('the rule matches nothing');
  return { sets, notes: [...reader.notes] };
}

class RuleReader {
  readonly notes = new Set<string>();
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(rule: string) {
    const tokens = rule.match(/`[^`]*`|"(?:[^"\\]|\\.)*"|'[^']*'|&&|\|\||[!(),]|\w+|\S/g) ?? [];
    this.#tokens = tokens;
  }

  whole(): RequestSet[] {
    const sets = this.#either(0);
    if (this.#at < this.#tokens.length)
      throw new RuleError(`the rule cannot be read at ${this.#tokens[this.#at]}`);
    return sets;
  }

  #either(depth: number): RequestSet[] {
    if (depth > DEPTH_MAX) throw new RuleError('the rule is nested too deeply');
    const sets = this.#all(depth);
    while (this.#take('||')) sets.push(...this.#all(depth));
    return this.#bounded(sets);
  }

  #all(depth: number): RequestSet[] {
    let sets = this.#one(depth);
    while (this.#take('&&')) {
      const others = this.#one(depth);
      sets = this.#bounded(sets.flatMap((a) => others.flatMap((b) => narrower(a, b) ?? [])));
    }
    return sets;
  }

  #one(depth: number): RequestSet[] {
    if (this.#take('!')) throw new RuleError('a rule with ! has no route that says the same');
    if (this.#take('(')) {
      const sets = this.#either(depth + 1);
      this.#expect(')');
      return sets;
    }
    const name = this.#tokens[this.#at++] ?? '';
    this.#expect('(');
    const args: string[] = [];
    while (!this.#take(')')) {
      const text = this.#tokens[this.#at++];
      if (text === undefined) throw new RuleError('the rule has no )');
      if (text !== ',') args.push(text.replace(/^[`"']|[`"']$/g, ''));
    }
    return this.#matcher(name, args);
  }

  #matcher(name: string, args: readonly string[]): RequestSet[] {
    switch (name.toLowerCase()) {
      case 'method':
      case 'methods':
        return [{ methods: args.map((method) => method.toUpperCase()), path: '*' }];
      case 'path':
        return args.map((path) => ({ ...EVERYTHING, path: this.#path(path, true) }));
      case 'pathprefix':
        return args.map((path) => ({ ...EVERYTHING, path: this.#path(path, false) }));
      case 'pathregexp':
        return args.flatMap((expression) => this.#expression(expression));
      case 'host':
      case 'hostheader':
      case 'hostregexp':
      case 'hostsni':
        this.notes.add('Traefik matches the host too; a policy applies to every host');
        return [EVERYTHING];
      default:
        throw new RuleError(`its match by ${name} has no counterpart: a route is methods and a path`);
    }
  }

  #path(path: string, isExact: boolean): string {
    if (path.includes('{')) {
      // Version 2: {name} and {name:expression} are segments.
      const parts = path
        .split('/')
        .map((part) => (/^\{.*\}$/.test(part) ? '[^/]+' : part.replaceAll(/[.*+?^$()[\]|\\]/g, '\\$&')));
      const found = expressionPaths(`^${parts.join('/')}${isExact ? '$' : '(/.*)?$'}`, true);
      const [only] = found?.paths ?? [];
      if (only === undefined) throw new RuleError(`no route says the same as the path ${path}`);
      if (/\{\w+:/.test(path)) this.notes.add(`the route matches more than ${path}`);
      return only;
    }
    const pattern = isExact ? exactPattern(path) : prefixPattern(path);
    if (pattern === null) throw new RuleError(`no route says the same as the path ${path}`);
    if (!isExact) for (const note of prefixNotes(path)) this.notes.add(note);
    return pattern;
  }

  #expression(expression: string): RequestSet[] {
    const found = expressionPaths(expression, false);
    if (found === null) throw new RuleError(`no route says the same as the expression ${expression}`);
    for (const note of found.notes) this.notes.add(note);
    return found.paths.map((path) => ({ ...EVERYTHING, path }));
  }

  #bounded(sets: RequestSet[]): RequestSet[] {
    if (sets.length > SETS_MAX) throw new RuleError(`the rule has more than ${SETS_MAX} alternatives`);
    return sets;
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at++;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token))
      throw new RuleError(`the rule cannot be read at ${this.#tokens[this.#at] ?? 'its end'}`);
  }
}
