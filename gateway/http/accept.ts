/** Tells whether a request asks for HTML, as a browser does that loads a page (RFC 9110 12.5.1). */

/** Browsers send at most 150 characters. */
const ACCEPT_LENGTH_MAX = 512;
const JSON_TYPE = /^application\/(?:json|.+\+json)$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** The field that was read last. The requests of a flood all have the same one. */
let latest = { accept: '', prefersHtml: false };

/** Whether Accept contains text/html, and ranks it above JSON. */
export function prefersHtml(rawHeaders: readonly string[]): boolean {
  let accept: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== 6 || name.toLowerCase() !== 'accept') continue;
    const value = rawHeaders[i + 1] ?? '';
    accept = accept === null ? value : `${accept},${value}`;
    if (accept.length > ACCEPT_LENGTH_MAX) return false;
  }
  if (accept === null) return false;
  if (accept !== latest.accept) latest = { accept, prefersHtml: ranksHtmlFirst(accept) };
  return latest.prefersHtml;
}

function ranksHtmlFirst(accept: string): boolean {
  if (!/text\/html/i.test(accept)) return false;
  let html = 0;
  /** Weight of JSON; null if JSON is not listed. */
  let json: number | null = null;
  let anyApplication: number | null = null;
  let any = 0;
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';');
    const type = name.trim();
    const weight = weightOf(parameters);
    if (type === 'text/html') html = Math.max(html, weight);
    else if (JSON_TYPE.test(type)) json = Math.max(json ?? 0, weight);
    else if (type === 'application/*') anyApplication = weight;
    else if (type === '*/*') any = weight;
  }
  return html > (json ?? anyApplication ?? any);
}

/** @returns 1 without a weight, 0 if it cannot be parsed */
function weightOf(parameters: readonly string[]): number {
  const weights = parameters.map((text) => text.trim()).filter((text) => text.startsWith('q='));
  if (weights.length === 0) return 1;
  const text = weights[0]?.slice(2) ?? '';
  return weights.length === 1 && WEIGHT.test(text) ? Number(text) : 0;
}
