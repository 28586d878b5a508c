/**
 * Kong: the plugin rate-limiting of a declarative file. If several plugins apply to a request, Kong uses only the most
 * specific one. In a policy file every matching policy applies.
 */
import { BY_ADDRESS, byHeader, ImportError, Imported, limitPer, UNITS, type Who } from './imported.ts';
import { ConsumerLimits } from './kong-consumers.ts';
import { expressionPaths, isWithin, narrower, prefixPattern } from './path-pattern.ts';
import type { Tree } from './tree.ts';

interface KongRoute {
  readonly name: string;
  readonly service: string | null;
  readonly methods: readonly string[] | null;
  readonly paths: readonly string[];
  readonly notes: readonly string[];
  readonly line: number;
}

interface Scope {
  readonly what: string;
  readonly hint: string;
  readonly routes: readonly KongRoute[];
  /** Scope of the plugin: 0 for all of Kong, 1 for a service, 2 for a route. */
  readonly rank: 0 | 1 | 2;
}

interface Plugin {
  readonly plugin: Tree;
  readonly scope: Scope;
}

const OTHER_PLUGINS: Readonly<Record<string, string>> = {
  'response-ratelimiting':
    'its limits are not carried over: write them with cost: { replyHeader: NAME, reserve: N }',
  'rate-limiting-advanced': 'it is of another plugin; write its limits as policies',
};
const EVERYWHERE: KongRoute = { name: 'all', service: null, methods: null, paths: ['*'], notes: [], line: 1 };

/** @throws ImportError if the file is not a declarative file of Kong */
export function importKong([document]: readonly Tree[]): Imported {
  if (document === undefined || !looksLikeKong(document))
    throw new ImportError(
      'it has no lists of services, routes or plugins, so it is not a declarative file of Kong; make one with deck gateway dump',
    );
  const reading = new Reading(document);
  reading.read();
  reading.imported.planHeader = {
    header: 'x-consumer-username',
    note: 'Kong names the consumer in x-consumer-username: set GATEWAY_TRUSTED_PROXIES to its address.',
  };
  return reading.imported;
}

/** Recognizes files without the version, which Kong requires but files often omit. */
export function looksLikeKong(document: Tree): boolean {
  if (document.at('_format_version').isPresent) return true;
  return ['services', 'routes', 'plugins', 'consumers'].some((key) => document.at(key).items().length > 0);
}

class Reading {
  readonly imported = new Imported();
  readonly #document: Tree;
  readonly #routes: KongRoute[] = [];
  readonly #plugins: Plugin[] = [];
  readonly #consumers: ConsumerLimits;

  constructor(document: Tree) {
    this.#document = document;
    this.#consumers = new ConsumerLimits(document, this.imported);
  }

  read(): void {
    const services = this.#document.at('services').items();
    for (const service of services) {
      const name = service.at('name').text ?? '';
      for (const route of service.at('routes').items()) this.#route(route, name);
    }
    for (const route of this.#document.at('routes').items())
      this.#route(route, route.at('service', 'name').text ?? route.at('service').text);
    for (const service of services) {
      const name = service.at('name').text ?? '';
      for (const plugin of service.at('plugins').items()) this.#plugin(plugin, this.#ofService(name));
      for (const route of service.at('routes').items()) this.#pluginsOf(route);
    }
    for (const route of this.#document.at('routes').items()) this.#pluginsOf(route);
    for (const plugin of this.#document.at('plugins').items()) {
      const route = plugin.at('route', 'name').text ?? plugin.at('route').text;
      const service = plugin.at('service', 'name').text ?? plugin.at('service').text;
      const everywhere: Scope = { what: 'everywhere', hint: 'all', routes: [EVERYWHERE], rank: 0 };
      const scope =
        route !== null ? this.#ofRoute(route) : service !== null ? this.#ofService(service) : everywhere;
      this.#plugin(plugin, scope);
    }
    for (const plugin of this.#plugins) if (isRateLimit(plugin.plugin)) this.#limits(plugin);
    this.#consumers.refuseUnused();
  }

  #route(route: Tree, service: string | null): void {
    const name = route.at('name').text ?? `line-${route.line}`;
    const methods = route.at('methods').texts();
    const paths: string[] = [];
    const notes: string[] = [];
    for (const path of route.at('paths').texts()) {
      const expression = path.startsWith('~')
        ? expressionPaths(path.slice(1).replace(/^\^?/, '^'), false, path)
        : null;
      const prefix = path.startsWith('~') ? null : prefixPattern(path);
      if (expression !== null) {
        paths.push(...expression.paths);
        notes.push(...expression.notes);
      } else if (prefix !== null) paths.push(prefix);
      else this.imported.refuse(route, `path ${path} of route ${name}`, 'no route says the same');
    }
    for (const condition of ['hosts', 'headers', 'snis', 'expression'])
      if (route.at(condition).isPresent)
        notes.push(`Kong matches ${condition} too; a route is methods and a path`);
    const hasPaths = route.at('paths').isPresent;
    if (hasPaths && paths.length === 0) return;
    const all = hasPaths ? paths : ['*'];
    const { line } = route;
    this.#routes.push({
      name,
      service,
      methods: methods.length > 0 ? methods : null,
      paths: all,
      notes,
      line,
    });
  }

  #pluginsOf(route: Tree): void {
    const name = route.at('name').text ?? `line-${route.line}`;
    for (const plugin of route.at('plugins').items()) this.#plugin(plugin, this.#ofRoute(name));
  }

  #plugin(plugin: Tree, scope: Scope): void {
    const name = plugin.at('name').text ?? '';
    const reason = OTHER_PLUGINS[name];
    if (plugin.at('enabled').text === 'false') {
      if (reason !== undefined || isRateLimit(plugin))
        this.imported.refuse(plugin, `${name} of ${scope.what}`, 'it is switched off (enabled: false)');
      return;
    }
    if (reason !== undefined) this.imported.refuse(plugin, `${name} of ${scope.what}`, reason);
    else if (
      isRateLimit(plugin) &&
      (plugin.at('consumer').isPresent || plugin.at('consumer_group').isPresent)
    )
      this.#consumers.add(plugin, scope.rank === 0);
    else this.#plugins.push({ plugin, scope });
  }

  #ofService(name: string): Scope {
    const routes = this.#routes.filter((route) => route.service === name);
    return { what: `service ${name}`, hint: name, routes, rank: 1 };
  }

  #ofRoute(name: string): Scope {
    const routes = this.#routes.filter((route) => route.name === name);
    return { what: `route ${name}`, hint: name, routes, rank: 2 };
  }

  #limits({ plugin, scope }: Plugin): void {
    const config = plugin.at('config');
    const what = `rate-limiting of ${scope.what}`;
    const notes: string[] = [];
    const who = this.#who(config, scope, notes);
    if (typeof who === 'string') {
      this.imported.refuse(plugin, what, who);
      return;
    }
    if ((config.at('policy').text ?? 'local') === 'local')
      notes.push('policy local: there each Kong counts for itself, here all gateways together');
    for (const other of this.#plugins.filter(
      (one) => isRateLimit(one.plugin) && isMoreSpecific(one.scope, scope),
    ))
      notes.push(`counts ${other.scope.what} too, which has limits of its own in line ${other.plugin.line}`);
    notes.push(...this.#alsoCounted(scope));
    const code = config.at('error_code').number ?? 429;
    if (code !== 429) notes.push(`error_code ${code}: a denial is always 429`);
    const patterns = scope.routes.flatMap((route) => route.paths.map((path) => ({ route, path })));
    if (patterns.length === 0) {
      this.imported.refuse(plugin, what, 'it has no route with a path');
      return;
    }
    const units = UNITS.filter((unit) => config.at(unit).number !== null);
    if (units.length === 0) {
      this.imported.refuse(plugin, what, 'it has no limit such as minute');
      return;
    }
    for (const unit of units) {
      const limit = limitPer(unit, config.at(unit).number, '');
      if (typeof limit === 'string') {
        this.imported.refuse(plugin, `${unit} of ${what}`, limit);
        continue;
      }
      for (const { route, path } of patterns) {
        this.imported.add({
          ...limit,
          hint: units.length > 1 ? `${scope.hint}-${unit}` : scope.hint,
          methods: route.methods,
          path,
          who,
          plans: this.#consumers.of(unit),
          onStoreFailure: config.at('fault_tolerant').text === 'false' ? 'deny' : 'local',
          headers: !config.at('hide_client_headers').isTrue,
          group: patterns.length > 1 ? `${scope.hint}-${plugin.line}-${unit}` : null,
          source: { line: plugin.line, what: `${unit} of ${what}` },
          notes: [...notes, ...route.notes, ...limit.notes],
        });
      }
    }
  }

  /** Returns other routes within those of the scope. Kong sends a request to only one route. */
  #alsoCounted(scope: Scope): string[] {
    if (scope.rank === 0) return [];
    const hasOwn = new Set(
      this.#plugins
        .filter((one) => isRateLimit(one.plugin))
        .flatMap((one) => (one.scope.rank > 0 ? one.scope.routes : [])),
    );
    const isCounted = ({ methods, paths }: KongRoute): boolean =>
      scope.routes.some((wide) =>
        paths.some((path) =>
          wide.paths.some(
            (outer) =>
              isWithin(path, outer) &&
              narrower({ methods, path }, { methods: wide.methods, path: outer }) !== null,
          ),
        ),
      );
    return this.#routes
      .filter((route) => !scope.routes.includes(route) && !hasOwn.has(route) && isCounted(route))
      .map(({ name, line }) => `counts route ${name} of line ${line} too, which Kong does not`);
  }

  /** @returns the clients that the plugin counts, or the reason why they cannot be counted */
  #who(config: Tree, scope: Scope, notes: string[]): Who | string {
    const limitBy = config.at('limit_by').text ?? 'consumer';
    switch (limitBy) {
      case 'ip':
        return BY_ADDRESS;
      case 'header': {
        const header = config.at('header_name').text;
        return header === null ? 'limit_by: header needs header_name' : byHeader(header);
      }
      case 'consumer':
      case 'credential': {
        const header = this.#keyHeader(scope);
        if (header === null) {
          notes.push(`limit_by: ${limitBy} without key-auth counts by address`);
          return BY_ADDRESS;
        }
        notes.push(
          `counts each key, where Kong counts each ${limitBy}; requests without a key are not counted`,
        );
        return byHeader(header);
      }
      default:
        return `limit_by: ${limitBy} has no counterpart; clients are counted by address or by header`;
    }
  }

  /** Returns the header of the key-auth plugin of this scope. */
  #keyHeader(scope: Scope): string | null {
    const found = this.#plugins.find(
      (one) =>
        one.plugin.at('name').text === 'key-auth' &&
        (one.scope.rank === 0 || scope.routes.every((route) => one.scope.routes.includes(route))),
    );
    if (found === undefined) return null;
    return (found.plugin.at('config', 'key_names').texts()[0] ?? 'apikey').replaceAll('_', '-');
  }
}

function isRateLimit(plugin: Tree): boolean {
  return plugin.at('name').text === 'rate-limiting';
}

function isMoreSpecific(a: Scope, b: Scope): boolean {
  return (
    a.rank > b.rank &&
    a.routes.some((route) =>
      route.paths.some((path) => b.routes.some((wide) => wide.paths.some((outer) => isWithin(path, outer)))),
    )
  );
}
