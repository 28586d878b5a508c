/** Checks what one part of a survey's content requires of another. */
import type { LocalizedText } from '#api/values/schemas.ts';
import { reservedIds } from './question-types.ts';
import type { SurveyContent } from './schema.ts';

type Issues = Record<string, string>;

/** Schemes of addresses that run code. Surveys are shown on pages of other sites, where such a link would run it. */
const PROGRAM = /^(javascript|vbscript|data):/i;
/** Maximum number of characters that are searched for a scheme. */
const SCHEME_LOOKED_AT_MAX = 2_048;
const PROGRAM_REFUSED = 'Give the address of a page';

/** @returns problems by dotted path */
export function crossIssues(content: SurveyContent): Issues {
  const issues: Issues = {};
  checkIds(content, issues);
  checkElements(content, issues);
  content.endings.forEach((ending, i) => {
    const { buttonLink } = ending;
    if (buttonLink !== undefined && buttonLink !== '' && !/^(https?:\/\/|#recall:)/i.test(buttonLink)) {
      issues[`endings.${i}.buttonLink`] = 'Give an address that starts with http:// or https://';
    }
    if (isProgram(ending.url)) issues[`endings.${i}.url`] = PROGRAM_REFUSED;
  });
  if (isProgram(content.redirectUrl)) issues.redirectUrl = PROGRAM_REFUSED;
  if (content.welcomeCard.enabled && content.welcomeCard.headline === undefined) {
    issues['welcomeCard.headline'] = 'Required';
  }
  return issues;
}

function checkIds(content: SurveyContent, issues: Issues): void {
  const seen = new Set<string>();
  const claim = (id: string, path: string): void => {
    if (reservedIds.has(id.toLowerCase())) issues[path] = `"${id}" is reserved; choose another id`;
    else if (seen.has(id)) issues[path] = usedTwice(id);
    seen.add(id);
  };
  content.blocks.forEach((block, b) => {
    block.elements.forEach((element, e) => {
      claim(element.id, `blocks.${b}.elements.${e}.id`);
    });
  });
  content.hiddenFields.fieldIds?.forEach((id, i) => {
    claim(id, `hiddenFields.fieldIds.${i}`);
  });
  checkUnique(content.blocks, 'blocks', issues);
  checkUnique(content.endings, 'endings', issues);
  checkUnique(content.variables, 'variables', issues);
}

function checkUnique(items: readonly { readonly id: string }[], path: string, issues: Issues): void {
  const seen = new Set<string>();
  items.forEach(({ id }, i) => {
    if (seen.has(id)) issues[`${path}.${i}.id`] = usedTwice(id);
    seen.add(id);
  });
}

function usedTwice(id: string): string {
  return `"${id}" is used twice; ids are unique in a survey`;
}

function checkElements(content: SurveyContent, issues: Issues): void {
  content.blocks.forEach((block, b) => {
    block.elements.forEach((element, e) => {
      const path = `blocks.${b}.elements.${e}`;
      if (element.type === 'cta' && element.buttonExternal === true && !element.buttonUrl) {
        issues[`${path}.buttonUrl`] = 'Required when buttonExternal is true';
      }
      if (element.type === 'cta' && isProgram(element.buttonUrl))
        issues[`${path}.buttonUrl`] = PROGRAM_REFUSED;
      if (element.type === 'matrix') checkRowLabels(element.rows, `${path}.rows`, issues);
    });
  });
}

/** Answers to a matrix have the labels of its rows as keys, and this one is refused in every body (request-body.ts). */
function checkRowLabels(
  rows: readonly { readonly label: LocalizedText }[],
  path: string,
  issues: Issues,
): void {
  rows.forEach(({ label }, i) => {
    if (Object.values(label).includes('__proto__')) {
      issues[`${path}.${i}.label`] = 'must not be "__proto__"';
    }
  });
}

/** Whether the address runs code. Browsers skip blanks and control characters before the scheme. */
function isProgram(address: string | null | undefined): boolean {
  return (
    typeof address === 'string' &&
    PROGRAM.test(address.slice(0, SCHEME_LOOKED_AT_MAX).replaceAll(/[\s\p{Cc}]/gu, ''))
  );
}
