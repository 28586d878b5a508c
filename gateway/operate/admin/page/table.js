/** Tables. No row moves while somebody uses the table, and where there is little room, each row becomes a block. */
import { h } from './dom.js';

/**
 * `head` is the text of the column. `kind` are classes of its cells, `state` those of a cell that depend on its item. The
 * cells of `isHeader` are headers of their rows.
 *
 * @typedef {{ head: string, kind?: string, state?: (item: any) => any, isHeader?: boolean, cell: (item: any) => any }} Column
 */

/** Items as they are shown, by id of the table. @type {Map<string, { key: string }[]>} */
const shown = new Map();

/** An operator has changed something or asked for other rows, so they move even if somebody uses the table. */
export function letRowsMove() {
  shown.clear();
}

/** Somebody points at it, or has the keyboard in it. A tap leaves no pointer behind. */
function isInUse(node) {
  const canPoint = matchMedia('(hover: hover)').matches;
  return node?.contains(document.activeElement) || (canPoint && node?.matches(':hover'));
}

/** @returns {any[]} the items, or those that were shown, with new figures */
function held(id, items) {
  const before = shown.get(id) ?? [];
  const isHeld = before.length > 0 && isInUse(document.getElementById(`${id}-rows`));
  const byKey = isHeld ? new Map(items.map((item) => [item.key, item])) : new Map();
  const now = isHeld ? before.map((item) => byKey.get(item.key) ?? item) : items;
  shown.set(id, now);
  return now;
}

/** @param {Column[]} columns @param {{ key: string }[]} items */
export function table(id, columns, items) {
  const heads = columns.map(({ head, kind }) => h('th', { scope: 'col', class: kind }, head));
  const rows = held(id, items).map((item) => {
    const cells = columns.map((column) => cellOf(column, item));
    return h('tr', cells);
  });
  return h('table', h('thead', h('tr', heads)), h('tbody', { id: `${id}-rows` }, rows));
}

/** @param {Column} column */
function cellOf({ head, kind = '', state, isHeader, cell }, item) {
  const name = `${kind} ${state?.(item) || ''}`.trim();
  if (isHeader) return h('th', { scope: 'row', class: name }, cell(item));
  return h('td', { class: name, 'data-head': head }, cell(item));
}

/** Something that may be larger than its place. The keys scroll it too. @param {string} label for screen readers */
export function scrolled(label, content) {
  return h('section.scroll', { tabindex: 0, 'aria-label': label }, content);
}
