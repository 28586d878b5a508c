/**
 * Groups the paths of a log into routes. Numbers, UUIDs and long random segments become {id}. So does every segment at
 * a place with more than LITERALS_MAX different ones.
 */

/** Number of different segments at one place beyond which they count as names of users, files or articles. */
const LITERALS_MAX = 64;
/** Maximum number of places. At further ones, every segment is a value. */
const PLACES_MAX = 2000;
/** The end of a deeper path becomes one segment. */
const DEPTH_MAX = 12;

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const RANDOM = /^[A-Za-z0-9_~.-]{16,}$/;
/** Words and years, as in an article's title. Not an id. */
const SLUG = /^(?:[a-z]+|\d+)(?:[-_](?:[a-z]+|\d+)){2,}$/i;
/** Five consonants in a row, which words do not have. */
const UNSPEAKABLE = /[bcdfghjklmnpqrstvwxz]{5}/i;

export class RoutePatterns {
  /** Different segments by the pattern before them; null if there are too many. */
  readonly #literals = new Map<string, Set<string> | null>();

  /** @param path canonical */
  of(path: string): string {
    const segments = path.slice(1).split('/');
    let pattern = '';
    for (const segment of segments.slice(0, segments.length > DEPTH_MAX ? DEPTH_MAX - 1 : DEPTH_MAX))
      pattern += this.#isValue(pattern, segment) ? '/{id}' : `/${segment}`;
    return segments.length > DEPTH_MAX ? `${pattern}/{rest*}` : pattern;
  }

  #isValue(place: string, segment: string): boolean {
    if (isId(segment)) return true;
    let known = this.#literals.get(place);
    if (known === undefined) {
      if (this.#literals.size === PLACES_MAX) return true;
      known = new Set();
      this.#literals.set(place, known);
    }
    known?.add(segment);
    if (known !== null && known.size <= LITERALS_MAX) return false;
    this.#literals.set(place, null);
    return true;
  }
}

/** Whether this segment identifies one object of many. */
export function isId(segment: string): boolean {
  if (/^\d+$/.test(segment) || UUID.test(segment)) return true;
  const isLong = RANDOM.test(segment) && !SLUG.test(segment);
  if (isLong && UNSPEAKABLE.test(segment)) return true;
  if (!/\d/.test(segment)) return false;
  if (/^[0-9a-f]{8,}$/i.test(segment)) return true;
  const changes = segment.match(/[A-Za-z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0;
  return (changes >= 4 && segment.length >= 10) || (isLong && changes >= 1);
}
