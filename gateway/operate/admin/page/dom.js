/** Elements and numbers. Everything that comes from the gateway becomes text, never markup. */

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] `class`, `on…` and attributes; false and null leave one out
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** @returns {any} */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === false || value === undefined) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** @returns {any} the element of this id, which the page has */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

/** Only what changes is touched, so that a selection survives. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Somebody points at it, or has the keyboard in it: what moves now is missed. A tap leaves no pointer behind. */
export function isInUse(node) {
  const canPoint = matchMedia('(hover: hover)').matches;
  return node.contains(document.activeElement) || (canPoint && node.matches(':hover'));
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function count(value) {
  return whole.format(value);
}

/** For narrow places. */
export function brief(value) {
  return value < 10_000 ? whole.format(value) : compact.format(value);
}

export function rate(value) {
  return value >= 10 ? whole.format(value) : short.format(value);
}

/** Hours, minutes and seconds of the operator's clock; the day too where it is another one. */
export function clockTime(iso) {
  const time = new Date(iso);
  const isToday = time.toDateString() === new Date().toDateString();
  const text = time.toLocaleTimeString('en-GB');
  return isToday ? text : `${time.toLocaleDateString('en-GB')} ${text}`;
}

export function timeOf(iso) {
  return el('time', { datetime: iso, title: iso }, clockTime(iso));
}

/** `90` is 90 s; `3600` is 1 h */
export function spanText(seconds) {
  for (const [unit, length] of /** @type {const} */ ([
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
  ])) {
    if (seconds >= length && seconds % length === 0) return `${seconds / length} ${unit}`;
  }
  return `${seconds} s`;
}

export function quotaText({ limit, windowSeconds, algorithm }) {
  if (algorithm === 'concurrency') return `${count(limit)} in flight`;
  if (algorithm === 'token-bucket') return `${count(limit)} at once`;
  return `${count(limit)} in ${spanText(windowSeconds)}`;
}
