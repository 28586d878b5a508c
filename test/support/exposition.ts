/** Parses Prometheus' text format as far as the tests need it: families, labels and their values. */
export interface ScrapedFamily {
  readonly type: string;
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Returns the families by name. */
export function scrapedFamilies(text: string): ReadonlyMap<string, ScrapedFamily> {
  const families = new Map<string, { type: string; labels: Map<string, Set<string>> }>();
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm))
    families.set(name, { type, labels: new Map() });
  for (const [, name = '', pairs = ''] of text.matchAll(/^(\w+)\{(.*)\} \S+$/gm)) {
    const family = families.get(familyName(name, families));
    for (const [, label = '', value = ''] of pairs.matchAll(/(\w+)="([^"]*)"/g)) {
      const values = family?.labels.get(label) ?? new Set();
      family?.labels.set(label, values.add(value));
    }
  }
  return families;
}

/** Returns the family of a series. Names of a histogram's series begin with the family's name. */
export function familyName(series: string, families: ReadonlyMap<string, unknown>): string {
  const histogram = series.replace(/_(?:bucket|sum|count)$/, '');
  return families.has(histogram) ? histogram : series;
}
