/**
 * The views and their addresses. The part of the address behind # names the view, or a refusal that a dialog explains:
 * `#/overview`, `#/clients/DIGEST`, `#/policies/LINE`, `#/why/ID`.
 */
import { dismissMessage } from './changes.js';
import { announce, byId, on } from './dom.js';

const TITLES = { overview: 'Overview', clients: 'Clients', policies: 'Policies' };

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
  announce('draw');
  // A screen reader then reads the new view. At the start the page itself is read.
  if (!isFirst) byId(`${view}-title`).focus({ preventScroll: true });
}

/** @param {Record<string, (part: string) => unknown>} each by view, and `why` */
export function wireViews(each) {
  handlers = each;
  window.addEventListener('hashchange', follow);
  on('dialog', 'close', () => {
    if (location.hash.startsWith('#/why/')) history.replaceState(null, '', `#/${shown}`);
  });
}
