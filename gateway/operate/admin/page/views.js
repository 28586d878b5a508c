/**
 * The views and their addresses. The part of the address behind # names the view, or a refusal that a dialog explains:
 * `#/overview`, `#/clients/DIGEST`, `#/policies/LINE`, `#/why/ID`. Keyboard shortcuts are handled here as well.
 */
import { closeButton, dismissMessage, openDialog } from './changes.js';
import { buttons, byId, drawNow, facts, h, on } from './dom.js';

const TITLES = { overview: 'Overview', clients: 'Clients', policies: 'Policies' };
const KEYS = [
  ['/', 'Search'],
  ['?', 'Show this help'],
  ['1 to 3', 'Overview, Clients, Policies'],
  ['Esc', 'Close a dialog, or leave the search field'],
  ['← →', 'Move along the chart when it has the focus'],
];

/** Name of the view that is shown. */
let shown = '';
/** Handlers by the part of the address after the name of a view. */
let handlers = {};

export function isShown(view) {
  return shown === view;
}

/** @param {string} address such as `clients/DIGEST` */
export function go(address) {
  if (location.hash === `#/${address}`) follow();
  else location.hash = `#/${address}`;
}

/** Shows what the address names. */
export function follow() {
  // Links within the page, such as the one to the content, name no view.
  if (location.hash !== '' && !location.hash.startsWith('#/')) return;
  const [, name = '', part = ''] = /^#\/(\w*)\/?([\w/.:-]*)/.exec(location.hash) ?? [];
  if (name === 'why') {
    show(shown || 'overview');
    handlers.why(part);
    return;
  }
  byId('dialog').close();
  show(name in TITLES ? name : 'overview');
  handlers[shown]?.(part);
}

function show(view) {
  if (view === shown) return;
  const isFirst = shown === '';
  dismissMessage();
  shown = view;
  for (const name of Object.keys(TITLES)) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll('#views a')) {
    if (link.getAttribute('href') === `#/${view}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${TITLES[view]} – Floodgate`;
  window.scrollTo(0, 0);
  drawNow();
  // A screen reader then reads the new view. At the start the page itself is read.
  if (!isFirst) byId(`${view}-title`).focus({ preventScroll: true });
}

export function openHelp() {
  openDialog(
    'Help',
    facts(KEYS.map(([key, text]) => [h('kbd', key), text])),
    h(
      'p',
      'Every refusal has an id in x-gateway-decision and in its body. Type the id into the search field to read why the request was refused.',
    ),
    h('p', 'An address or a key in the search field shows that client. Other text searches the refusals.'),
    buttons(closeButton()),
  );
}

function onKey(event) {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  const search = byId('search-text');
  if (key === 'Escape' && target === search) search.blur();
  if (ctrlKey || metaKey || altKey || byId('content').hidden || byId('dialog').open) return;
  if (target.closest('input, select, textarea') !== null) return;
  const view = Object.keys(TITLES)[Number(key) - 1];
  if (view !== undefined) go(view);
  else if (key === '/') {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (key === '?') openHelp();
}

/** @param {Record<string, (part: string) => unknown>} each by view, and `why` */
export function wireViews(each) {
  handlers = each;
  window.addEventListener('hashchange', follow);
  document.addEventListener('keydown', onKey);
  on('help', 'click', openHelp);
  on('skip', 'click', (event) => {
    event.preventDefault();
    byId('main').focus();
  });
  on('dialog', 'close', () => {
    if (location.hash.startsWith('#/why/')) history.replaceState(null, '', `#/${shown}`);
  });
}
