/** Reads routers and middlewares of Traefik from a dynamic file, from labels of Compose, or from Kubernetes. */
import { Tree } from './tree.ts';

export interface TraefikConfig {
  readonly routers: readonly TraefikRouter[];
  /** Middlewares by name, without the provider after the @. */
  readonly middlewares: ReadonlyMap<string, Tree>;
}

export interface TraefikRouter {
  readonly name: string;
  readonly rule: string;
  readonly middlewares: readonly string[];
  readonly line: number;
}

interface Draft {
  readonly routers: TraefikRouter[];
  readonly middlewares: Map<string, Tree>;
}

const LABEL = /^traefik\.http\.(routers|middlewares)\.([^.]+)\.(.+)$/i;

export function readTraefik(documents: readonly Tree[]): TraefikConfig {
  const draft: Draft = { routers: [], middlewares: new Map() };
  for (const document of documents) {
    fromFile(field(document, 'http'), draft);
    for (const [, service] of document.at('services').entries()) {
      fromLabels(service.at('labels'), draft);
      fromLabels(service.at('deploy', 'labels'), draft);
    }
    const isList = /List$/.test(document.at('kind').text ?? '');
    for (const resource of isList ? document.at('items').items() : [document])
      fromKubernetes(resource, draft);
  }
  return draft;
}

/** Finds an option. Traefik reads names of options in any case. */
export function field(tree: Tree, ...names: readonly string[]): Tree {
  let found = tree;
  for (const name of names) {
    const [key] = found.entries().find(([key]) => key.toLowerCase() === name.toLowerCase()) ?? [name];
    found = found.at(key);
  }
  return found;
}

export function bareName(name: string): string {
  return name.trim().replace(/@\w+$/, '');
}

function fromFile(http: Tree, { routers, middlewares }: Draft): void {
  for (const [name, router] of field(http, 'routers').entries()) {
    const rule = field(router, 'rule').text ?? '';
    const used = field(router, 'middlewares').texts().map(bareName);
    routers.push({ name, rule, middlewares: used, line: router.line });
  }
  for (const [name, middleware] of field(http, 'middlewares').entries()) middlewares.set(name, middleware);
}

function fromLabels(labels: Tree, { routers, middlewares }: Draft): void {
  const found = new Map<
    string,
    { readonly kind: string; readonly name: string; line: number; options: object }
  >();
  for (const { label, value, line } of labelsOf(labels)) {
    const [, kind = '', name = '', path = ''] = LABEL.exec(label) ?? [];
    if (name === '') continue;
    const key = `${kind.toLowerCase()}.${name}`;
    const entry = found.get(key) ?? { kind: kind.toLowerCase(), name, line, options: {} };
    found.set(key, entry);
    setAt(entry.options, path.split('.'), value);
  }
  for (const { kind, name, line, options } of found.values()) {
    const tree = new Tree(options, () => line);
    if (kind === 'middlewares') middlewares.set(name, tree);
    else {
      const used = (field(tree, 'middlewares').text ?? '').split(',').map(bareName).filter(Boolean);
      routers.push({ name, rule: field(tree, 'rule').text ?? '', middlewares: used, line });
    }
  }
}

/** Reads a list of NAME=VALUE, or a map. */
function labelsOf(labels: Tree): { readonly label: string; readonly value: string; readonly line: number }[] {
  const listed = labels.items().flatMap((item) => {
    const [, label = '', value = ''] = /^([^=]+)=([\s\S]*)$/.exec(item.text ?? '') ?? [];
    return [{ label, value, line: item.line }];
  });
  const mapped = labels
    .entries()
    .map(([label, value]) => ({ label, value: value.text ?? '', line: value.line }));
  // Compose files escape a dollar as two.
  return [...listed, ...mapped].map((one) => ({ ...one, value: one.value.replaceAll('$$', '$') }));
}

function setAt(options: object, path: readonly string[], value: string): void {
  let at = options;
  for (const [i, key] of path.entries()) {
    const known: unknown = Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
    const next = i === path.length - 1 ? value : typeof known === 'object' && known !== null ? known : {};
    // An assignment would be unsafe, because a label may contain __proto__.
    Object.defineProperty(at, key, { value: next, enumerable: true, configurable: true, writable: true });
    if (typeof next === 'object') at = next;
  }
}

function fromKubernetes(resource: Tree, { routers, middlewares }: Draft): void {
  const name = resource.at('metadata', 'name').text ?? '';
  const kind = resource.at('kind').text;
  if (kind === 'Middleware') middlewares.set(name, resource.at('spec'));
  if (kind !== 'IngressRoute') return;
  for (const [i, route] of resource.at('spec', 'routes').items().entries()) {
    const used = route
      .at('middlewares')
      .items()
      .flatMap((one) => one.at('name').text ?? []);
    routers.push({
      name: `${name}-${i + 1}`,
      rule: route.at('match').text ?? '',
      middlewares: used,
      line: route.line,
    });
  }
}
