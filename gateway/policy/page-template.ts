/** The operator's template for the page that browsers show when a request is refused. */
import { escapeHtml, sourceOf } from '#shared/page.ts';
import { attempt, foreignCharacter, Mistake, type Report } from './problems.ts';
import { type ReferencedFiles, versionOf } from './referenced-files.ts';

const PLACEHOLDERS = ['seconds', 'policy', 'decision'] as const;

type PageValues = Readonly<Record<(typeof PLACEHOLDERS)[number], string>>;

export interface PageTemplate {
  /** Alternating texts and names of placeholders. It begins and ends with a text. */
  readonly parts: readonly string[];
  readonly contentSecurityPolicy: string;
  /** Name of the file and first characters of its hash. */
  readonly version: string;
}

const BYTES_MAX = 65_536;
const PLACEHOLDER = new RegExp(`\\{(${PLACEHOLDERS.join('|')})\\}`);
const SCRIPT = /<script\b([^>]*)>([\s\S]*?)(<\/script\b|$)/gi;

/** @returns null if the file has a mistake, which is reported */
export function loadPage(name: string, referenced: ReferencedFiles, report: Report): PageTemplate | null {
  return attempt(report, ['page'], () => templateOf(name, referenced.text(name, BYTES_MAX)));
}

/** @throws Mistake */
export function templateOf(name: string, text: string): PageTemplate {
  const foreign = foreignCharacter(text);
  if (foreign !== null) throw new Mistake(`${name} has ${foreign.message}`, foreign.fix);
  const parts = text.split(PLACEHOLDER);
  if (parts.length === 1)
    throw new Mistake(
      `${name} has none of {seconds}, {policy} and {decision}`,
      'write {seconds} where the page says how long to wait',
    );
  // A browser compares the hash of a script after it has read CRLF as LF.
  const hashes = scriptsIn(name, text).map((script) => sourceOf(script.replaceAll('\r\n', '\n')));
  return {
    parts,
    // Styles may be anywhere in the page. Images and fonts may come from the application.
    contentSecurityPolicy: contentSecurityPolicy(
      hashes,
      "'self' 'unsafe-inline'",
      "img-src 'self' data:; font-src 'self' data:; ",
    ),
    version: `${name}, version ${versionOf(text)}`,
  };
}

function scriptsIn(name: string, text: string): string[] {
  return [...text.matchAll(SCRIPT)].map(([, attributes = '', script = '', end]) => {
    if (/\ssrc\s*=/i.test(attributes))
      throw new Mistake(`${name} loads a script from elsewhere`, 'write it between <script> and </script>');
    if (end === '') throw new Mistake(`${name} has a <script> without </script>`, 'end the script');
    if (PLACEHOLDER.test(script))
      throw new Mistake(
        `${name} has a placeholder in a script`,
        'put it into an element, and let the script read it there',
      );
    return script;
  });
}

/** @param others additional directives */
export function contentSecurityPolicy(scripts: readonly string[], styles: string, others: string): string {
  const script = scripts.length === 0 ? "'none'" : [...new Set(scripts)].join(' ');
  return `default-src 'none'; script-src ${script}; style-src ${styles}; ${others}base-uri 'none'; form-action 'none'`;
}

export function fill({ parts }: PageTemplate, values: PageValues): string {
  return parts.map((part, i) => (i % 2 === 0 ? part : escapeHtml(values[part as keyof PageValues]))).join('');
}
