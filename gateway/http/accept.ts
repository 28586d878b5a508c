/** Tells whether a request asks for HTML, as a browser does that loads a page (RFC 9110 12.5.1). */
import { valuesOf } from './header-fields.ts';

/** Browsers send at most 150 characters. */
const ACCEPT_LENGTH_MAX = 512;
const JSON_TYPE = /^application\/(?:json|.+\+json)$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** The field that was read last. The requests of a flood all have the same one. */
let latest = { accept: '', prefersHtml: false };

/** Whether Accept contains text/html, and ranks it above JSON. */
export function prefersHtml(rawHeaders: readonly string[]): boolean {
  const accept = valuesOf(rawHeaders, 'accept').join();
  if (accept.length > ACCEPT_LENGTH_MAX) return false;
  if (accept !== latest.accept) latest = { accept, prefersHtml: ranksHtmlFirst(accept) };
  return latest.prefersHtml;
}

function ranksHtmlFirst(accept: string): boolean {
  if (!/text\/html/i.test(accept)) return false;
  const ranges = accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()));
  /** @returns the highest weight of these types; null if none is listed */
  const weightOf = (type: RegExp): number | null => {
    const weights = ranges.filter(([name = '']) => type.test(name)).map(([, ...rest]) => weightIn(rest));
    return weights.length === 0 ? null : Math.max(...weights);
  };
  const ofJson = weightOf(JSON_TYPE) ?? weightOf(/^application\/\*$/) ?? weightOf(/^\*\/\*$/) ?? 0;
  return (weightOf(/^text\/html$/) ?? 0) > ofJson;
}

/** @returns 1 without a weight, 0 if it cannot be parsed */
function weightIn(parameters: readonly string[]): number {
  const [weight = 'q=1', ...others] = parameters.filter((text) => text.startsWith('q='));
  return others.length === 0 && WEIGHT.test(weight.slice(2)) ? Number(weight.slice(2)) : 0;
}
