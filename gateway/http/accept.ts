/** Tells whether a request asks for HTML, as a browser does that loads a page (RFC 9110 12.5.1). */
import { valuesOf } from './header-fields.ts';

/** Browsers send at most 150 characters. */
const ACCEPT_LENGTH_MAX = 512;
const JSON_TYPE = /^application\/(?:json|.+\+json)$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Whether Accept contains text/html, and ranks it above JSON. */
export function prefersHtml(rawHeaders: readonly string[]): boolean {
  const accept = valuesOf(rawHeaders, 'accept').join().toLowerCase();
  if (accept.length > ACCEPT_LENGTH_MAX || !accept.includes('text/html')) return false;
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return { type, weight: WEIGHT.test(weight) ? Number(weight) : 0 };
  });
  /** @returns the highest weight of these types; -1 if none is listed */
  const weightOf = (types: RegExp): number =>
    Math.max(-1, ...ranges.filter(({ type }) => types.test(type)).map(({ weight }) => weight));
  const ofJson =
    [JSON_TYPE, /^application\/\*$/, /^\*\/\*$/].map(weightOf).find((weight) => weight >= 0) ?? 0;
  return weightOf(/^text\/html$/) > ofJson;
}
