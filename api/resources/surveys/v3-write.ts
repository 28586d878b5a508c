/** Reads a document of v3, and translates it for the code that writes surveys of all versions. */
import { FieldError, invalidDocument } from '#api/errors.ts';
import { privateSegment } from '#api/resources/segments/private-segment.ts';
import { newId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { readContent } from './content.ts';
import { createFindings, type Findings } from './findings.ts';
import { checkLogicReferences } from './logic.ts';
import type { SurveyContent } from './schema.ts';
import type { Survey } from './store.ts';
import { documentPath, toContentFields, triggersIn } from './v3-document.ts';
import { languageRows, planLanguages } from './v3-languages.ts';
import { type Complete, completed, type WriteParts } from './write.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The parts that logic refers to. Changing one of them may leave a reference without a target. */
const referredTo = ['blocks', 'endings', 'hiddenFields', 'variables'];

interface Draft {
  readonly content: SurveyContent;
  readonly complete: Complete;
}

/**
 * @param document of the shape that v3 takes
 * @param stored the survey that it changes; null for a new one
 * @param createdBy the user who creates it; null if a program does
 * @throws ApiError invalid_fields, unprocessable_content
 */
export function readDraft(
  parts: WriteParts,
  document: Fields,
  stored: Survey | null,
  createdBy: string | null = null,
): Draft {
  const { distribution, targeting } = document;
  const idOf = (): string => newId(parts.random);
  const findings = createFindings();
  const plan = planLanguages(document, stored, findings);
  const fields = toContentFields(document, plan.locales, idOf, findings);
  const isLink = (stored?.content.type ?? fields.type ?? 'link') === 'link';
  for (const name of isLink ? ['distribution', 'targeting'] : []) {
    if (document[name] === undefined) continue;
    findings.add(name, { reason: 'Only app surveys have this', code: 'unsupported_field' });
  }
  const filters = isRecord(targeting) && Array.isArray(targeting.filters) ? targeting.filters : null;
  checkFilters(filters, 'targeting.filters', findings);
  refuse(findings);
  const authored = stored === null ? { createdBy } : {};
  const content = readContent({ ...fields, ...authored }, stored?.content ?? null, idOf);
  if (referredTo.some((name) => document[name] !== undefined)) checkLogicReferences(content, findings);
  refuse(findings);
  const complete: Complete = async (trx, survey) => {
    const languages =
      plan.languages === null
        ? survey.languages
        : await languageRows(trx, parts, survey.workspaceId, plan.languages);
    const body = distribution === undefined ? {} : { triggers: triggersIn(distribution) };
    const made = await completed(trx, parts, body, { ...survey, languages });
    // A segment that several surveys use stays unchanged. This survey gets its own.
    return filters === null ? made : { ...made, segment: await privateSegment(trx, parts, survey, filters) };
  };
  return { content, complete };
}

/** Refuses filters on surveys, which only shared segments may have. */
function checkFilters(nodes: unknown, path: string, findings: Findings): void {
  if (!Array.isArray(nodes)) return;
  nodes.forEach((node: unknown, i) => {
    const resource = isRecord(node) ? node.resource : undefined;
    const at = `${path}.${i}.resource`;
    checkFilters(resource, at, findings);
    if (!isRecord(resource) || !isRecord(resource.root) || resource.root.type !== 'surveyInteraction') return;
    const reason = 'Filters on surveys are not supported here; use a segment of the management API';
    findings.add(`${at}.root.type`, { reason, code: 'unsupported_field' });
  });
}

function refuse({ issues }: Findings): void {
  if (Object.keys(issues).length > 0) throw invalidDocument(issues);
}

/** Runs a write of a document. Its errors name refused fields as on v3. */
export async function asDocument<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof FieldError) || error.code !== 'invalid_fields') throw error;
    const issues = Object.entries(error.issues).map(([path, issue]) => [documentPath(path), issue]);
    throw invalidDocument(Object.fromEntries(issues));
  }
}
