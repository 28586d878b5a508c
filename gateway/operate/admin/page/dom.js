/**
 * Drawing. Functions describe elements, and patch() makes the page like the description. What has not changed is not
 * touched, so that selections, the focus and typed text survive. Everything from the gateway becomes text, never markup.
 */

const SVG = 'http://www.w3.org/2000/svg';

/** @typedef {{ tag: string, properties: Record<string, any>, children: any[] }} Description */

/**
 * @example h('p.soft', { id: 'total' }, 'in all ', h('strong', '7'), isExact ? null : ' or more')
 * @param {string} name the tag and its classes
 * @param {...any} rest properties, if there are any, then children; null and false leave either out
 * @returns {Description}
 */
export function h(name, ...rest) {
  const [tag = '', ...classes] = name.split('.');
  const hasProperties = rest[0]?.constructor === Object && rest[0].tag === undefined;
  const properties = hasProperties ? { ...rest.shift() } : {};
  if (classes.length > 0) properties.class = classes.join(' ');
  return { tag, properties, children: rest };
}

/**
 * Makes the children of a node like the described ones.
 *
 * @param {...any} described descriptions and texts, also in arrays
 */
export function patch(node, ...described) {
  const children = described.flat(Number.POSITIVE_INFINITY);
  children.forEach((child, i) => {
    const at = node.childNodes[i];
    const next = fits(at, child) ? at : created(child, node.namespaceURI);
    if (at === undefined) node.append(next);
    else if (next !== at) at.replaceWith(next);
    update(next, child);
  });
  while (node.childNodes.length > children.length) node.lastChild.remove();
}

function fits(node, child) {
  if (!node) return false;
  return child?.tag === undefined ? node.nodeType === Node.TEXT_NODE : node.localName === child.tag;
}

function created(child, namespace) {
  if (child?.tag === undefined) return document.createTextNode('');
  return document.createElementNS(child.tag === 'svg' ? SVG : namespace, child.tag);
}

function update(node, child) {
  if (child?.tag === undefined) {
    const text = child === null || child === undefined || child === false ? '' : String(child);
    if (node.data !== text) node.data = text;
    return;
  }
  if (node.described === child) return;
  const before = node.described?.properties ?? {};
  node.described = child;
  for (const name of Object.keys({ ...before, ...child.properties }))
    if (before[name] !== child.properties[name]) setProperty(node, name, child.properties[name]);
  patch(node, child.children);
}

function setProperty(node, name, value) {
  if (name.startsWith('on')) node[name] = value ?? null;
  else if (name === 'style') Object.assign(node.style, value);
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? '' : value);
}

/** @param {string} kind classes @param {Record<string, unknown>} [more] properties */
export function button(text, kind, onclick, more = {}) {
  return h('button', { type: 'button', class: kind, onclick, ...more }, text);
}

/** @param {...any} children buttons */
export function buttons(...children) {
  return h('div.buttons', ...children);
}

export function errorText({ message }) {
  return h('p.bad', message);
}

/** @param {[any, any][]} pairs names and values */
export function facts(pairs) {
  return h(
    'dl.facts',
    pairs.map(([name, value]) => [h('dt', name), h('dd', value)]),
  );
}

/** The heading of a panel. @param {string} scope whose figures it has @param {...any} more at the other end */
export function head(id, title, scope, ...more) {
  const heading = h('h3', { id: `${id}-title`, tabindex: -1 }, `${title}, `, h('span.scope', scope));
  return h('div.head', heading, ...more);
}

/** @returns {any} the element of this id, which the page has */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

export function on(id, event, handler) {
  byId(id).addEventListener(event, handler);
}

let isDue = false;

/** @param {string} event `draw`: the page must be drawn; `changed`: an operator has changed something; `signed-out` */
export function announce(event) {
  document.dispatchEvent(new Event(event));
}

/** Draws the page in the next frame. A hidden page has none, and draws when it is seen again. */
export function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    announce('draw');
  });
}
