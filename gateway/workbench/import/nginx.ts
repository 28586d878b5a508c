/**
 * NGINX: `limit_req_zone` and `limit_req`. A request is in exactly one location, which has the limits of the block around
 * it unless it has its own; here every policy whose route matches applies. What that changes is said at each row.
 */
import {
  ImportError,
  type Imported,
  type ImportedExclusion,
  type ImportedRow,
  PLAIN_ROW,
  type Unsupported,
  type Who,
} from './imported.ts';
import { type Directive, parseNginx } from './nginx-conf.ts';
import { exactPattern, expressionNotes, expressionPaths, prefixPattern } from './path-pattern.ts';
import { isWithin as isPathWithin } from './route-sets.ts';

interface Zone {
  readonly name: string;
  readonly who: Who;
  /** Requests in so many seconds. */
  readonly requests: number;
  readonly seconds: number;
}

interface Use {
  readonly zone: Zone;
  readonly burst: number;
  readonly isDelaying: boolean;
  readonly directive: Directive;
}

interface Limits {
  readonly uses: readonly Use[];
  /** One of them has no counterpart. */
  readonly hasRefused: boolean;
  readonly isDryRun: boolean;
}

/** A block and the limits that its requests have, perhaps none. */
interface Place extends Limits {
  readonly what: string;
  readonly hint: string;
  readonly paths: readonly string[];
  readonly notes: readonly string[];
  readonly line: number;
  readonly server: number;
}

const PLACES_MAX = 1000;

const UNSUPPORTED: Readonly<Record<string, string>> = {
  include: 'included files are not followed; import them one by one, or the output of nginx -T',
  limit_conn:
    'write a policy with concurrency for requests in flight; GATEWAY_CLIENT_SHARE bounds the connections of every client alike',
  limit_rate: 'the speed of replies is not limited',
};

export function importNginx(text: string): Imported {
  const reading = new Reading();
  reading.http(parseNginx(text));
  return reading.result();
}

class Reading {
  readonly #zones = new Map<string, Zone>();
  /** Zones that are there and have no counterpart. */
  readonly #refusedZones = new Set<string>();
  /** Variables that map and geo set. */
  readonly #mapped = new Set<string>();
  readonly #unsupported: Unsupported[] = [];
  readonly #places: Place[] = [];
  #servers = 0;
  #excluded: readonly ImportedExclusion[] = [];

  http(all: readonly Directive[]): void {
    const blocks = all.flatMap(({ name, block }) => (name === 'http' && block !== null ? [block] : []));
    if (blocks.length > 0) this.#tellUnsupported(all);
    // A file of conf.d has no http block of its own.
    for (const block of blocks.length > 0 ? blocks : [all]) {
      for (const { name, args } of block)
        if (name === 'map' || name === 'geo') this.#mapped.add(args.at(-1) ?? '');
      for (const directive of block) if (directive.name === 'limit_req_zone') this.#zone(directive);
    }
    for (const block of blocks.length > 0 ? blocks : [all]) {
      this.#tellUnsupported(block);
      const outer = this.#limitsOf(block, { uses: [], hasRefused: false, isDryRun: false });
      const servers = block.filter(({ name }) => name === 'server');
      for (const server of servers) this.#server(server, outer);
      // A file of locations alone, which a server includes.
      if (servers.length === 0 && block.length > 0)
        this.#server({ name: 'http', args: [], block, line: 1 }, outer);
    }
  }

  result(): Imported {
    if (this.#places.length > PLACES_MAX)
      throw new ImportError(`it has more than ${PLACES_MAX} locations; split it`);
    this.#excluded = this.#exclusions();
    const uses = this.#places.flatMap((place) => place.uses.map((use) => ({ use, place })));
    const rows = [...Map.groupBy(uses, ({ use }) => use.zone.name).values()]
      .flatMap((same) => this.#rowsOf(same))
      .sort((a, b) => a.source.line - b.source.line);
    return { rows, exclude: this.#excluded, unsupported: this.#unsupported };
  }

  #zone({ args, line }: Directive): void {
    const [key = '', ...options] = args;
    const [name = ''] = (option(options, 'zone') ?? '').split(':');
    const rate = /^(\d+)r\/([sm])$/.exec(option(options, 'rate') ?? '');
    const what = `limit_req_zone ${args.join(' ')}`;
    const who = this.#mapped.has(key) ? mappedReason(key) : whoOf(key);
    if (rate === null || typeof who === 'string' || options.includes('sync')) {
      const reason =
        typeof who === 'string'
          ? who
          : rate === null
            ? 'it has no rate such as 10r/s'
            : 'sync is of NGINX Plus';
      this.#refusedZones.add(name);
      this.#unsupported.push({ line, what, reason });
      return;
    }
    const [, requests, unit] = rate;
    this.#zones.set(name, { name, who, requests: Number(requests), seconds: unit === 's' ? 1 : 60 });
  }

  #server({ block, line, args, name }: Directive, outer: Limits): void {
    const directives = block ?? [];
    if (name === 'server' && onlyRedirects(directives)) return;
    if (name === 'server') this.#tellUnsupported(directives);
    const server = this.#servers++;
    const limits = this.#limitsOf(directives, outer);
    const names = directives.find((directive) => directive.name === 'server_name')?.args ?? args;
    const what = [name, ...names].join(' ');
    this.#places.push({ what, hint: 'all', paths: ['*'], notes: [], ...limits, line, server });
    this.#locations(directives, limits, server);
  }

  #locations(directives: readonly Directive[], outer: Limits, server: number): void {
    for (const { name, args, block, line } of directives) {
      if (name !== 'location' || block === null) continue;
      this.#tellUnsupported(block);
      const hasOwn = block.some((directive) => directive.name === 'limit_req');
      const limits = this.#limitsOf(block, outer);
      const what = `location ${args.join(' ')}`;
      const read = pathsOf(args);
      if (typeof read === 'string') {
        if (hasOwn) this.#unsupported.push({ line, what, reason: read });
      } else if (hasOwn || limits.uses.length === 0)
        // Others are counted as what is around them.
        this.#places.push({ what, hint: hintOf(args), ...read, ...limits, line, server });
      this.#locations(block, limits, server);
    }
  }

  /** A block with limits of its own has none of those around it. */
  #limitsOf(block: readonly Directive[], outer: Limits): Limits {
    const hasOwn = block.some(({ name }) => name === 'limit_req');
    const uses = hasOwn ? this.#usesOf(block) : outer.uses;
    return {
      uses,
      hasRefused: hasOwn
        ? uses.length < block.filter(({ name }) => name === 'limit_req').length
        : outer.hasRefused,
      isDryRun: block.some(({ name }) => name === 'limit_req_dry_run')
        ? isOn(block, 'limit_req_dry_run')
        : outer.isDryRun,
    };
  }

  #usesOf(block: readonly Directive[]): Use[] {
    return block.flatMap((directive) => {
      const { name, args, line } = directive;
      if (name !== 'limit_req') return [];
      const zoneName = option(args, 'zone') ?? '';
      const zone = this.#zones.get(zoneName);
      if (zone === undefined) {
        const reason = this.#refusedZones.has(zoneName)
          ? `the zone ${zoneName} has no counterpart`
          : `the zone ${zoneName} is not in this file`;
        this.#unsupported.push({ line, what: `limit_req ${args.join(' ')}`, reason });
        return [];
      }
      const burst = Number(option(args, 'burst') ?? 0);
      const isDelaying = burst > 0 && !args.includes('nodelay');
      return [{ zone, burst: Number.isSafeInteger(burst) ? burst : 0, isDelaying, directive }];
    });
  }

  /** @param same all uses of one zone */
  #rowsOf(same: readonly { readonly use: Use; readonly place: Place }[]): ImportedRow[] {
    const [first] = same;
    if (first === undefined) return [];
    const { zone } = first.use;
    const burst = Math.max(...same.map(({ use }) => use.burst));
    const isOneMode = same.every(({ place }) => place.isDryRun === first.place.isDryRun);
    const rowCount = same.reduce((sum, { place }) => sum + place.paths.length, 0);
    return same.flatMap(({ use, place }): ImportedRow[] => {
      const { directive, isDelaying } = use;
      const source = { line: directive.line, what: `limit_req ${directive.args.join(' ')} in ${place.what}` };
      const notes = [...place.notes];
      if (use.burst !== burst)
        notes.push(`burst=${burst} instead of ${use.burst}, as where the zone ${zone.name} has the largest`);
      if (isDelaying)
        notes.push('without nodelay NGINX delays requests of the burst; here they pass at once');
      if (this.#servers > 1) notes.push(`of ${place.what} only in NGINX; a policy holds for every host`);
      for (const { what, line } of this.#otherwiseCounted(place, zone))
        notes.push(`counts ${what} of line ${line} too, which NGINX does not`);
      if (rowCount > 1 && !isOneMode)
        notes.push(
          'limit_req_dry_run is not the same in all places, so the counter is not shared as in NGINX',
        );
      return place.paths.map((path) => ({
        ...PLAIN_ROW,
        hint: place.hint === 'all' ? zone.name : `${zone.name}-${place.hint}`,
        methods: null,
        path,
        who: zone.who,
        limit: zone.requests,
        windowSeconds: zone.seconds,
        // One more than those that are over the rate.
        burst: burst + 1,
        mode: place.isDryRun ? ('shadow' as const) : ('enforce' as const),
        group:
          rowCount > 1 ? `${zone.name}${isOneMode ? '' : place.isDryRun ? '-dry-run' : '-enforced'}` : null,
        source,
        notes,
      }));
    });
  }

  /** Places that a policy of this place counts as well, and NGINX does not. */
  #otherwiseCounted(place: Place, zone: Zone): Place[] {
    const excluded = new Set(this.#excluded.map(({ path }) => path));
    return this.#places.filter(
      (other) =>
        other !== place &&
        other.server === place.server &&
        isWithin(other, place) &&
        !isWithin(place, other) &&
        !other.uses.some((use) => use.zone === zone) &&
        !other.paths.every((path) => excluded.has(path)),
    );
  }

  /** Of what has no limit, and lies within something that has one. */
  #exclusions(): ImportedExclusion[] {
    const limited = this.#places.filter(({ uses, hasRefused }) => uses.length > 0 || hasRefused);
    return this.#places
      .filter((place) => place.uses.length === 0 && !place.hasRefused)
      .filter((place) => limited.some((one) => one.server === place.server && isWithin(place, one)))
      .filter((place) => !limited.some((one) => isWithin(one, place)))
      .filter((place) => !this.#isLimitedElsewhere(place))
      .flatMap(({ paths, what, line }) => paths.map((path) => ({ path, source: { line, what } })));
  }

  /** Hosts are not known here: does another server limit these paths? */
  #isLimitedElsewhere(place: Place): boolean {
    for (let server = 0; server < this.#servers; server++) {
      if (server === place.server) continue;
      const around = this.#places.filter((one) => one.server === server && isWithin(place, one));
      const nearest = around.find((one) => around.every((other) => isWithin(one, other)));
      if (nearest === undefined ? around.length > 0 : nearest.uses.length > 0 || nearest.hasRefused)
        return true;
    }
    return false;
  }

  #tellUnsupported(block: readonly Directive[]): void {
    for (const { name, args, line } of block) {
      const reason = UNSUPPORTED[name];
      if (reason !== undefined)
        this.#unsupported.push({ line, what: `${name} ${args.join(' ')}`.trim(), reason });
      if (name === 'limit_req_status' && args[0] !== '429')
        this.#unsupported.push({
          line,
          what: `limit_req_status ${args[0]}`,
          reason: 'a denial is always 429',
        });
    }
  }
}

/** Its requests are answered before NGINX counts any: limit_req comes after return. */
function onlyRedirects(server: readonly Directive[]): boolean {
  if (has(server, 'return')) return true;
  const locations = server.filter(({ name }) => name === 'location');
  return (
    locations.some(({ args, block }) => args.join() === '/' && has(block ?? [], 'return')) &&
    !has(server, 'limit_req') &&
    !locations.some(({ block }) => has(block ?? [], 'limit_req'))
  );
}

function has(block: readonly Directive[], name: string): boolean {
  return block.some((directive) => directive.name === name);
}

function mappedReason(key: string): string {
  return `${key} comes from a map: write a policy by address or header, and the networks that are not limited under allow`;
}

function isWithin(inner: Place, outer: Place): boolean {
  return inner.paths.every((path) => outer.paths.some((wide) => isPathWithin(path, wide)));
}

function isOn(block: readonly Directive[], name: string): boolean {
  return block.some((directive) => directive.name === name && directive.args[0] === 'on');
}

function option(args: readonly string[], name: string): string | null {
  return args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** @returns whom the key of a zone counts, or why nobody can be counted by it */
function whoOf(key: string): Who | string {
  const variable = /^\$\{?(\w+)\}?$/.exec(key)?.[1]?.toLowerCase();
  if (variable === 'binary_remote_addr' || variable === 'remote_addr') return { kind: 'address' };
  if (variable?.startsWith('http_'))
    return { kind: 'header', header: variable.slice('http_'.length).replaceAll('_', '-') };
  if (variable === undefined) return `clients are counted by one variable only, not by ${key}`;
  return `$${variable} says nothing about who the client is; count by $binary_remote_addr or $http_NAME`;
}

/** @returns paths, or why the location has none */
function pathsOf(args: readonly string[]): Pick<Place, 'paths' | 'notes'> | string {
  const [first = '', second] = args;
  const noRoute = 'no route says the same';
  if (first.startsWith('@')) return 'a named location has no path';
  if (first === '~' || first === '~*') {
    const found = expressionPaths(second ?? '', false);
    if (found === null) return 'this regular expression has no route that says the same';
    const notes = expressionNotes(found, 'the regular expression');
    if (first === '~*') notes.push('NGINX ignores upper and lower case here, the route does not');
    return { paths: found.paths, notes };
  }
  const isExact = first === '=';
  const path = isExact || first === '^~' ? (second ?? '') : first;
  const pattern = isExact ? exactPattern(path) : prefixPattern(path);
  if (pattern === null) return noRoute;
  const isCut = !isExact && !path.endsWith('/');
  return {
    paths: [pattern],
    notes: isCut ? [`whole segments only: ${path} and what is below, not ${path}x`] : [],
  };
}

function hintOf(args: readonly string[]): string {
  const path = args.at(-1) ?? '';
  return path === '/' ? 'all' : path;
}
