/**
 * NGINX: `limit_req_zone` and `limit_req`. A request is in exactly one location. The location inherits the limits of
 * the surrounding block unless it has its own. In a policy file every matching policy applies. A note in each row tells
 * the difference.
 */

import { Imported, type ImportedExclusion } from './imported.ts';
import { parseNginx } from './nginx-conf.ts';
import { type Place, Places, type Use, type Zone } from './nginx-places.ts';
import { isWithin as isPathWithin } from './path-pattern.ts';

/** One `limit_req`, and where it applies. */
interface PlacedUse {
  readonly use: Use;
  readonly place: Place;
}

/** @throws ImportError */
export function importNginx(text: string): Imported {
  const imported = new Imported();
  const places = new Places(imported);
  places.read(parseNginx(text));
  imported.exclude.push(...exclusionsOf(places));
  const uses = places.all.flatMap((place) => place.uses.map((use) => ({ use, place })));
  for (const [zone, ofZone] of Map.groupBy(uses, ({ use }) => use.zone))
    addRows(zone, ofZone, places, imported);
  imported.rows.sort((a, b) => a.source.line - b.source.line);
  return imported;
}

function addRows(zone: Zone, uses: readonly PlacedUse[], places: Places, imported: Imported): void {
  const burst = Math.max(...uses.map(({ use }) => use.burst));
  const isOneMode = new Set(uses.map(({ place }) => place.isDryRun)).size === 1;
  const isShared = uses.reduce((sum, { place }) => sum + place.paths.length, 0) > 1;
  for (const { use, place } of uses) {
    const { directive, isDelaying } = use;
    const { isDryRun, hint } = place;
    const notes = [...place.notes];
    if (use.burst !== burst)
      notes.push(`burst=${burst} instead of ${use.burst}, as where the zone ${zone.name} has the largest`);
    if (isDelaying) notes.push('without nodelay NGINX delays requests of the burst; here they pass at once');
    if (places.servers > 1) notes.push(`of ${place.what} only in NGINX; a policy applies to every host`);
    for (const { what, line } of otherwiseCounted(place, zone, places, imported.exclude))
      notes.push(`counts ${what} of line ${line} too, which NGINX does not`);
    if (isShared && !isOneMode)
      notes.push('limit_req_dry_run is not the same in all places, so the counter is not shared as in NGINX');
    const group = isOneMode ? zone.name : `${zone.name}${isDryRun ? '-dry-run' : '-enforced'}`;
    for (const path of place.paths)
      imported.add({
        hint: hint === 'all' ? zone.name : `${zone.name}-${hint}`,
        path,
        who: zone.who,
        limit: zone.requests,
        windowSeconds: zone.seconds,
        // NGINX admits the burst in addition to the request that keeps the rate.
        burst: burst + 1,
        mode: isDryRun ? 'shadow' : 'enforce',
        group: isShared ? group : null,
        source: { line: directive.line, what: `limit_req ${directive.args.join(' ')} in ${place.what}` },
        notes,
      });
  }
}

/** Returns places that the policy counts too, although NGINX does not. */
function otherwiseCounted(
  place: Place,
  zone: Zone,
  places: Places,
  exclude: readonly ImportedExclusion[],
): Place[] {
  const excluded = new Set(exclude.map(({ path }) => path));
  return places.all.filter(
    (other) =>
      other !== place &&
      other.server === place.server &&
      isWithin(other, place) &&
      !isWithin(place, other) &&
      !other.uses.some((use) => use.zone === zone) &&
      !other.paths.every((path) => excluded.has(path)),
  );
}

/** Places without a limit within places that have one. */
function exclusionsOf(places: Places): ImportedExclusion[] {
  const limited = places.all.filter(isLimited);
  return places.all
    .filter((place) => !isLimited(place))
    .filter((place) => limited.some((one) => one.server === place.server && isWithin(place, one)))
    .filter((place) => !limited.some((one) => isWithin(one, place)))
    .filter((place) => !isLimitedElsewhere(place, places))
    .flatMap(({ paths, what, line }) => paths.map((path) => ({ path, source: { line, what } })));
}

/** Tells whether another server limits these paths. A policy cannot tell hosts apart. */
function isLimitedElsewhere(place: Place, { all, servers }: Places): boolean {
  for (let server = 0; server < servers; server++) {
    if (server === place.server) continue;
    const around = all.filter((one) => one.server === server && isWithin(place, one));
    const nearest = around.find((one) => around.every((other) => isWithin(one, other)));
    if (nearest === undefined ? around.length > 0 : isLimited(nearest)) return true;
  }
  return false;
}

function isLimited({ uses, hasRefused }: Place): boolean {
  return uses.length > 0 || hasRefused;
}

function isWithin(inner: Place, outer: Place): boolean {
  return inner.paths.every((path) => outer.paths.some((wide) => isPathWithin(path, wide)));
}
