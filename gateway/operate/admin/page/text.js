/** Numbers, times and limits as the page writes them. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export function count(value) {
  return whole.format(value);
}

export function rate(value) {
  if (value > 0 && value < 0.05) return '< 0.1';
  return value >= 10 ? whole.format(value) : short.format(value);
}

/** @returns the text of a count that is a lower bound if it is not exact */
export function atLeast(number, isExact) {
  return isExact ? count(number) : `≥ ${count(number)}`;
}

/** @param {[string, number][]} counts */
export function listed(counts) {
  return counts.map(([name, value]) => `${name} ${count(value)}`).join(', ');
}

export function cut(text, length) {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

const timeFormat = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'short' });

/**
 * Hours, minutes and seconds in the zone of the browser, and the date if it is not today.
 *
 * @param {string | number} at ISO 8601 or ms
 */
export function clockTime(at) {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? timeFormat.format(time) : `${dayFormat.format(time)} ${timeFormat.format(time)}`;
}

/** Turns the UTC times in a sentence of the gateway into times of the browser's zone. */
export function localTimes(text) {
  return text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (iso) => clockTime(iso));
}

/** `90` is 90 s; `3600` is 1 h */
export function spanText(seconds) {
  const [unit, length] = [
    /** @type {const} */ (['d', 86_400]),
    /** @type {const} */ (['h', 3600]),
    /** @type {const} */ (['min', 60]),
  ].find(([, length]) => seconds >= length && seconds % length === 0) ?? ['s', 1];
  return `${seconds / length} ${unit}`;
}

export function quotaText({ limit, windowSeconds, algorithm, distinct = null }) {
  if (algorithm === 'concurrency') return `${count(limit)} in flight`;
  if (algorithm === 'token-bucket') return `${count(limit)} at once`;
  const number = count(limit) + (distinct === null ? '' : ' different');
  if (algorithm.endsWith('calendar-window'))
    return `${number} in a calendar ${windowSeconds > 604_800 ? 'month' : windowSeconds > 86_400 ? 'week' : 'day'}`;
  return `${number} in ${spanText(windowSeconds)}`;
}

/** @param {number | null} ms an upper bound */
export function latencyText(ms) {
  if (ms === null) return '–';
  if (ms === Number.POSITIVE_INFINITY) return '> 10 s';
  return ms >= 1000 ? `≤ ${ms / 1000} s` : `≤ ${ms} ms`;
}

/** @param {{ until: string, reason: string }} ban */
export function untilText({ until, reason }) {
  return `until ${clockTime(until)}${reason === '' ? '' : ` (${reason})`}`;
}
