/** Elements, rows and numbers. Everything that comes from the gateway becomes text, never markup. */

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

/** @param {string} kind a class @param {Record<string, unknown>} [more] @returns {any} */
export function button(text, kind, onclick, more = {}) {
  return el('button', { type: 'button', class: kind, onclick, ...more }, text);
}

/**
 * A table of figures. If there is little room, each row becomes a block, and each cell shows the head of its column.
 *
 * @param {string[]} heads the first is the one of the row headers
 * @param {HTMLTableRowElement[]} rows
 */
export function figures(label, heads, rows) {
  for (const row of rows) {
    heads.forEach((head, i) => {
      if (i > 0) row.cells[i].dataset.head = head;
    });
  }
  return el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    el(
      'table',
      { class: 'figures' },
      el('thead', {}, el('tr', {}, ...heads.map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, ...rows),
    ),
  );
}

/** @returns {any} the element of this id, which the page has */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

/** Sets the text only if it changes, so that a selection survives. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Somebody points at it, or has the keyboard in it: rows must not move. A tap leaves no pointer behind. */
function isInUse(node) {
  const canPoint = matchMedia('(hover: hover)').matches;
  return node.contains(document.activeElement) || (canPoint && node.matches(':hover'));
}

/**
 * The rows of a table, by key. A row stays the same element while its figures change, and no row moves while somebody
 * uses the table.
 */
export class Rows {
  /**
   * @param {HTMLElement} body
   * @param {(item: any) => { node: HTMLElement, fill: (item: any) => void }} make
   */
  constructor(body, make) {
    this.body = body;
    this.make = make;
    /** @type {Map<string, { node: HTMLElement, fill: (item: any) => void, item: any }>} */
    this.known = new Map();
  }

  /** Something else that the rows show has changed, such as the bans of their clients. */
  fillAgain() {
    for (const { fill, item } of this.known.values()) fill(item);
  }

  /** @param {{ key: string }[]} items in their order @param {boolean} isForced moves rows even if they are in use */
  show(items, isForced = false) {
    const isHeld = !isForced && this.known.size > 0 && isInUse(this.body);
    for (const item of items) {
      if (isHeld && !this.known.has(item.key)) continue;
      const row = { ...(this.known.get(item.key) ?? this.make(item)), item };
      this.known.set(item.key, row);
      row.fill(item);
    }
    if (isHeld) return;
    const wanted = new Set(items.map(({ key }) => key));
    for (const [key, { node }] of this.known) {
      if (wanted.has(key)) continue;
      node.remove();
      this.known.delete(key);
    }
    items.forEach(({ key }, i) => {
      const { node } = this.known.get(key);
      if (this.body.children[i] !== node) this.body.insertBefore(node, this.body.children[i] ?? null);
    });
  }
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
  if (value > 0 && value < 0.05) return '< 0.1';
  return value >= 10 ? whole.format(value) : short.format(value);
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
  const number = count(limit) + (algorithm.startsWith('distinct-') ? ' different' : '');
  if (algorithm.endsWith('calendar-window'))
    return `${number} in a calendar ${windowSeconds > 604_800 ? 'month' : windowSeconds > 86_400 ? 'week' : 'day'}`;
  return `${number} in ${spanText(windowSeconds)}`;
}
