/** Reads which series an expression of PromQL asks for, to compare them with a scrape. */
import { familyName, type ScrapedFamily } from './exposition.ts';

/** Labels that Prometheus adds. */
const OF_TARGETS: ReadonlySet<string> = new Set(['job', 'instance']);
const SERIES = /\b((?:floodgate|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g;

/** @returns what the expression asks for and the scrape does not have */
export function missingIn(
  expression: string,
  families: ReadonlyMap<string, ScrapedFamily>,
): readonly string[] {
  const missing: string[] = [];
  const labels = new Set<string>(OF_TARGETS);
  for (const [, series = '', selector = ''] of expression.matchAll(SERIES)) {
    if (series === 'up') continue;
    const family = families.get(familyName(series, families));
    if (family === undefined) {
      missing.push(series);
      continue;
    }
    for (const label of family.labels.keys()) labels.add(label);
    for (const [, label = '', operator = '', value = ''] of selector.matchAll(/(\w+)(=~|=)"([^"]*)"/g)) {
      if (OF_TARGETS.has(label)) continue;
      const values = family.labels.get(label);
      if (values === undefined) missing.push(`${series}{${label}}`);
      else if (operator === '=' && !values.has(value)) missing.push(`${series}{${label}="${value}"}`);
    }
  }
  for (const [, list = ''] of expression.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(',').map((name) => name.trim()))
      if (!labels.has(label)) missing.push(`by (${label})`);
  return missing;
}
