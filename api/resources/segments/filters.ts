/**
 * Compiles the filters of a segment, including nested groups, into one condition. Pure.
 *
 * The stored filters may come from anywhere, so everything is checked and bounded: depth, number, and the reported
 * mistakes.
 */
import { isRecord } from '#api/values/schemas.ts';
import { type Compiled, type Condition, compileFilter, type InvalidFilter } from './conditions.ts';

const DEPTH_MAX = 10;
const FILTERS_MAX = 500;
/** Maximum number of reported mistakes, because a caller cannot fix more at once. */
const ISSUES_MAX = 50;

interface Term {
  readonly connector: 'and' | 'or';
  readonly condition: Condition;
}

/**
 * Compiles filters. Without filters the segment contains everybody.
 *
 * @param filters `[{id, connector: null | and | or, resource: filter | nodes}]`
 */
export function compileFilters(filters: unknown): Compiled | InvalidFilter {
  const issues: Record<string, string> = {};
  const references = new Set<string>();
  let count = 0;

  const refuse = (at: string, text: string): void => {
    if (Object.keys(issues).length < ISSUES_MAX) issues[at] = text;
  };

  const group = (nodes: unknown, at: string, depth: number): Condition => {
    if (!Array.isArray(nodes)) return unless(at, 'must be array');
    if (depth > DEPTH_MAX) return unless(at, `must not be nested deeper than ${DEPTH_MAX} levels`);
    count += nodes.length;
    if (count > FILTERS_MAX)
      return unless('filters', `must not have more than ${FILTERS_MAX} filters and groups`);
    return disjunction(nodes.map((node: unknown, i) => term(node, i, `${at}.${i}`, depth)));
  };

  const term = (node: unknown, i: number, at: string, depth: number): Term => {
    if (!isRecord(node)) return { connector: 'and', condition: unless(at, 'must be object') };
    const { resource } = node;
    // The connector of the first filter has no meaning.
    const connector = i === 0 ? 'and' : node.connector;
    if (connector !== 'and' && connector !== 'or') {
      return { connector: 'and', condition: unless(`${at}.connector`, 'must be one of and, or') };
    }
    if (Array.isArray(resource)) {
      return { connector, condition: group(resource, `${at}.resource`, depth + 1) };
    }
    if (!isRecord(resource)) {
      return { connector, condition: unless(`${at}.resource`, 'must be a filter or an array') };
    }
    return { connector, condition: filter(resource, `${at}.resource`) };
  };

  const filter = (resource: Readonly<Record<string, unknown>>, at: string): Condition => {
    const compiled = compileFilter(resource);
    if ('issues' in compiled) {
      for (const [part, text] of Object.entries(compiled.issues)) refuse(`${at}.${part}`, text);
      return nobody;
    }
    for (const reference of compiled.references) references.add(reference);
    return compiled.condition;
  };

  function unless(at: string, text: string): Condition {
    refuse(at, text);
    return nobody;
  }

  const condition = group(filters, 'filters', 1);
  if (Object.keys(issues).length > 0) return { issues };
  return { condition, references: [...references] };
}

function nobody(): boolean {
  return false;
}

/** Compiles terms: `and` binds before `or`, so a or b and c is a or (b and c). */
function disjunction(terms: readonly Term[]): Condition {
  const alternatives: Condition[][] = [];
  for (const { connector, condition } of terms) {
    const last = alternatives.at(-1);
    if (last === undefined || connector === 'or') alternatives.push([condition]);
    else last.push(condition);
  }
  if (alternatives.length === 0) return () => true;
  return (profile, isIn) => alternatives.some((all) => all.every((holds) => holds(profile, isIn)));
}
