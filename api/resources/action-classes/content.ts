/** Reads the body of an action class: requires the fields that its type needs, and keeps no others. Pure. */
import { type Issues, invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import { reshape } from '#api/values/schemas.ts';
import { type ActionClassBody, type NoCodeConfig, type NoCodeType, noCodeShapes } from './schema.ts';

interface ActionClassContent {
  readonly name: string;
  readonly description: string | null;
  readonly type: 'code' | 'noCode';
  /** The name that apps use in code; null for actions without code. */
  readonly key: string | null;
  readonly noCodeConfig: NoCodeConfig | null;
}

const checkers = new Map(
  Object.entries(noCodeShapes).map(([type, shape]) => [type, checker(shape)] as const),
);

export function readActionClass(body: ActionClassBody): ActionClassContent {
  const { name, type, description = null, key } = body;
  if (type === 'noCode') {
    return { name, type, description, key: null, noCodeConfig: readNoCodeConfig(body.noCodeConfig) };
  }
  if (!key) throw invalidFields({ key: 'Required' });
  return { name, type, description, key, noCodeConfig: null };
}

function readNoCodeConfig(given: Readonly<Record<string, unknown>> | null | undefined): NoCodeConfig {
  if (given === null || given === undefined) throw invalidFields({ noCodeConfig: 'Required' });
  const { type } = given;
  if (!isNoCodeType(type)) {
    throw invalidFields({
      'noCodeConfig.type': `must be one of ${Object.keys(noCodeShapes).join(', ')}`,
    });
  }
  const config = reshape(noCodeShapes[type], given, (value) => value);
  const known = checkers.get(type);
  if (known === undefined || !known.is(config)) {
    throw invalidFields(known?.issues(config, 'noCodeConfig') ?? {});
  }
  const issues = crossIssues(config);
  if (Object.keys(issues).length > 0) throw invalidFields(issues);
  return config;
}

function isNoCodeType(type: unknown): type is NoCodeType {
  return typeof type === 'string' && Object.hasOwn(noCodeShapes, type);
}

/** Checks that a schema cannot express. */
function crossIssues(config: NoCodeConfig): Issues {
  const issues: Record<string, string> = {};
  if ('elementSelector' in config) {
    const { cssSelector, innerHtml } = config.elementSelector;
    if (cssSelector === undefined && innerHtml === undefined) {
      issues['noCodeConfig.elementSelector'] = 'Give a cssSelector or an innerHtml';
    }
  }
  for (const [i, { rule, value }] of config.urlFilters.entries()) {
    const issue = filterIssue(rule, value);
    if (issue !== null) issues[`noCodeConfig.urlFilters.${i}.value`] = issue;
  }
  return issues;
}

function filterIssue(rule: string, value: string): string | null {
  switch (rule) {
    case 'exactMatch':
    case 'startsWith':
    case 'notMatch':
      return isPathOrAddress(value) ? null : 'Start with "/" or give an absolute http(s) address';
    case 'matchesRegex':
      return isRegex(value) ? null : 'This is not a regular expression';
    default:
      return null;
  }
}

function isPathOrAddress(value: string): boolean {
  return value.startsWith('/') || (/^https?:\/\//i.test(value) && URL.canParse(value));
}

/** The pattern is only parsed here. Browsers run it. */
function isRegex(value: string): boolean {
  try {
    new RegExp(value);
    return true;
  } catch {
    return false;
  }
}
