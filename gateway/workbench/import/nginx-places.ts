/** Reads the limits of each server and location: `limit_req_zone` and `limit_req`. */
import { BY_ADDRESS, byHeader, ImportError, type Imported, type Who } from './imported.ts';
import type { Directive } from './nginx-conf.ts';
import { exactPattern, expressionPaths, type Paths, prefixNotes, prefixPattern } from './path-pattern.ts';

export interface Zone {
  readonly name: string;
  readonly who: Who;
  /** Number of requests in that time. */
  readonly requests: number;
  readonly seconds: number;
}

export interface Use {
  readonly zone: Zone;
  readonly burst: number;
  readonly isDelaying: boolean;
  readonly directive: Directive;
}

interface Limits {
  readonly uses: readonly Use[];
  /** Whether one of the zones has no counterpart. */
  readonly hasRefused: boolean;
  readonly isDryRun: boolean;
}

/** A server or location, with the limits of its requests. */
export interface Place extends Limits, Paths {
  readonly what: string;
  readonly hint: string;
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

export class Places {
  readonly all: Place[] = [];
  servers = 0;
  readonly #imported: Imported;
  readonly #zones = new Map<string, Zone>();
  /** Zones that a policy cannot express. */
  readonly #refusedZones = new Set<string>();
  /** Variables that map and geo set. */
  readonly #mapped = new Set<string>();

  /** @param imported gets everything that a policy cannot express */
  constructor(imported: Imported) {
    this.#imported = imported;
  }

  /** @throws ImportError */
  read(all: readonly Directive[]): void {
    const blocks = all.flatMap(({ name, block }) => (name === 'http' && block !== null ? [block] : []));
    if (blocks.length > 0) this.#tellUnsupported(all);
    // A file in conf.d has no http block.
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
      // The file has only locations, and a server of another file includes it.
      if (servers.length === 0 && block.length > 0)
        this.#server({ name: 'http', args: [], block, line: 1 }, outer);
    }
    if (this.all.length > PLACES_MAX)
      throw new ImportError(`it has more than ${PLACES_MAX} locations; split it`);
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
      this.#imported.refuse({ line }, what, reason);
      return;
    }
    const [, requests, unit] = rate;
    this.#zones.set(name, { name, who, requests: Number(requests), seconds: unit === 's' ? 1 : 60 });
  }

  #server({ block, line, args, name }: Directive, outer: Limits): void {
    const directives = block ?? [];
    if (name === 'server' && onlyRedirects(directives)) return;
    if (name === 'server') this.#tellUnsupported(directives);
    const server = this.servers++;
    const limits = this.#limitsOf(directives, outer);
    const names = directives.find((directive) => directive.name === 'server_name')?.args ?? args;
    const what = [name, ...names].join(' ');
    this.all.push({ what, hint: 'all', paths: ['*'], notes: [], ...limits, line, server });
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
        if (hasOwn) this.#imported.refuse({ line }, what, read);
      } else if (hasOwn || limits.uses.length === 0)
        // A location that only inherits limits is not listed, because the surrounding block already is.
        this.all.push({ what, hint: hintOf(args), ...read, ...limits, line, server });
      this.#locations(block, limits, server);
    }
  }

  /** A block with its own limits does not inherit those of the surrounding block. */
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
      const { name, args } = directive;
      if (name !== 'limit_req') return [];
      const zoneName = option(args, 'zone') ?? '';
      const zone = this.#zones.get(zoneName);
      if (zone === undefined) {
        const reason = this.#refusedZones.has(zoneName)
          ? `the zone ${zoneName} has no counterpart`
          : `the zone ${zoneName} is not in this file`;
        this.#imported.refuse(directive, `limit_req ${args.join(' ')}`, reason);
        return [];
      }
      const burst = Number(option(args, 'burst') ?? 0);
      const isDelaying = burst > 0 && !args.includes('nodelay');
      return [{ zone, burst: Number.isSafeInteger(burst) ? burst : 0, isDelaying, directive }];
    });
  }

  #tellUnsupported(block: readonly Directive[]): void {
    for (const { name, args, line } of block) {
      const reason = UNSUPPORTED[name];
      if (reason !== undefined) this.#imported.refuse({ line }, `${name} ${args.join(' ')}`.trim(), reason);
      if (name === 'limit_req_status' && args[0] !== '429')
        this.#imported.refuse({ line }, `limit_req_status ${args[0]}`, 'a denial is always 429');
    }
  }
}

/** Whether NGINX answers all requests before it counts them, because limit_req runs after return. */
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

function isOn(block: readonly Directive[], name: string): boolean {
  return block.some((directive) => directive.name === name && directive.args[0] === 'on');
}

function option(args: readonly string[], name: string): string | null {
  return args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

/** @returns the clients that the key of a zone counts, or the reason why they cannot be counted */
function whoOf(key: string): Who | string {
  const variable = /^\$\{?(\w+)\}?$/.exec(key)?.[1]?.toLowerCase();
  if (variable === 'binary_remote_addr' || variable === 'remote_addr') return BY_ADDRESS;
  if (variable?.startsWith('http_')) return byHeader(variable.slice('http_'.length).replaceAll('_', '-'));
  if (variable === undefined) return `clients are counted by one variable only, not by ${key}`;
  return `$${variable} says nothing about who the client is; count by $binary_remote_addr or $http_NAME`;
}

/** @returns paths, or the reason why the location has none */
function pathsOf(args: readonly string[]): Paths | string {
  const [first = '', second] = args;
  if (first.startsWith('@')) return 'a named location has no path';
  if (first === '~' || first === '~*') {
    const found = expressionPaths(second ?? '', false, 'the regular expression');
    if (found === null) return 'this regular expression has no route that says the same';
    if (first === '~') return found;
    const note = 'NGINX ignores upper and lower case here, the route does not';
    return { paths: found.paths, notes: [...found.notes, note] };
  }
  const isExact = first === '=';
  const path = isExact || first === '^~' ? (second ?? '') : first;
  const pattern = isExact ? exactPattern(path) : prefixPattern(path);
  if (pattern === null) return 'no route says the same';
  return { paths: [pattern], notes: isExact ? [] : prefixNotes(path) };
}

function hintOf(args: readonly string[]): string {
  const path = args.at(-1) ?? '';
  return path === '/' ? 'all' : path;
}
