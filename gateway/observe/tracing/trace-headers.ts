const PARENT = 'traceparent';
const STATE = 'tracestate';

interface TraceHeaders {
  /** Value of `traceparent`. Empty if it is absent, or if there are several, because then none can be trusted. */
  readonly parent: string;
  /** All values, joined with commas. */
  readonly state: string;
}

export function traceHeadersOf(rawHeaders: readonly string[]): TraceHeaders {
  let parent = '';
  let parents = 0;
  let state = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (isNamed(name, PARENT)) {
      parent = rawHeaders[i + 1] ?? '';
      parents++;
    } else if (isNamed(name, STATE))
      state += state === '' ? (rawHeaders[i + 1] ?? '') : `,${rawHeaders[i + 1]}`;
  }
  return { parent: parents === 1 ? parent : '', state };
}

export function replaceTraceParent(headers: string[], parent: string, keepsState: boolean): void {
  let kept = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (isNamed(name, PARENT) || (!keepsState && isNamed(name, STATE))) continue;
    headers[kept] = name;
    headers[kept + 1] = headers[i + 1] ?? '';
    kept += 2;
  }
  headers.length = kept;
  headers.push(PARENT, parent);
}

function isNamed(name: string, lowerCase: string): boolean {
  return name.length === lowerCase.length && name.toLowerCase() === lowerCase;
}
