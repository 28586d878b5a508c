/** Tables. No row moves while somebody uses the table, and where there is little room, each row becomes a block. */
import { h } from './dom.js';

/**
 * `head` is the text of the column. `kind` are classes of its cells, `state` those of a cell that depend on its item. The
 * cells of `isHeader` are headers of their rows.
 *
 * @typedef {{ head: string, kind?: string, state?: (item: any) => any, isHeader?: boolean, isHidden?: boolean, cell: (item: any) => any }} Column
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
function tableOf(kind, id, columns, items) {
  const heads = columns.map((column) =>
    h(
      'th',
      { scope: 'col', class: column.kind },
      column.isHidden ? h('span.hidden-text', column.head) : column.head,
    ),
  );
  const rows = items.map((item) =>
    h(
      'tr',
      { key: item.key },
      columns.map((column) => cellOf(column, item)),
    ),
  );
  return h('table', { class: kind }, h('thead', h('tr', heads)), h('tbody', { id: `${id}-rows` }, rows));
}

/** @param {Column} column */
function cellOf({ head, kind = '', state, isHeader, cell }, item) {
  const name = `${kind} ${state?.(item) || ''}`.trim();
  if (isHeader) return h('th', { scope: 'row', class: name }, cell(item));
  return h('td', { class: name, 'data-head': head }, cell(item));
}

/** Clients and what they did. In a block, the classes of the cells place them. @param {Column[]} columns */
export function stacked(id, columns, items) {
  return tableOf('stacked', id, columns, held(id, items));
}

/** Figures. In a block, each has the head of its column. @param {string} label for screen readers @param {Column[]} columns */
export function figures(id, label, columns, items) {
  return scrolled(label, tableOf('figures', id, columns, held(id, items)));
}

/** Something that may be larger than its place. The keys scroll it too. @param {string} label for screen readers */
export function scrolled(label, content) {
  return h('section.scroll', { tabindex: 0, 'aria-label': label }, content);
}
