/** Answers that are files in our storage. Pure. */
import { type ApiError, badRequest } from '#api/errors.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import type { Answer, Answers } from './schema.ts';

/** Renderers send this for a file question that was skipped. */
const SKIPPED = 'skipped';

/** @returns why an answer is refused: it names files that are not ours, or of another survey. null if none does */
export function fileError(survey: BareSurvey, data: Answers, publicUrl: string): ApiError | null {
  const isForeign = survey.content.blocks
    .flatMap(({ elements }) => elements)
    .some(({ id, type }) => {
      const answer = type === 'fileUpload' && Object.hasOwn(data, id) ? data[id] : undefined;
      return answer !== undefined && !isFileOf(survey, id, answer, publicUrl);
    });
  return isForeign ? badRequest('Invalid file upload response') : null;
}

/** Whether all files of the answer were uploaded for this question, or, by old clients, for this workspace. */
function isFileOf(survey: BareSurvey, questionId: string, answer: Answer, publicUrl: string): boolean {
  if (answer === '' || answer === SKIPPED) return true;
  const files = typeof answer === 'string' ? [answer] : answer;
  return Array.isArray(files) && files.every((file) => isOwnFile(survey, questionId, file, publicUrl));
}

function isOwnFile(survey: BareSurvey, questionId: string, address: string, publicUrl: string): boolean {
  if (address === SKIPPED) return true;
  const path = address.startsWith(`${publicUrl}/`) ? address.slice(publicUrl.length) : address;
  const [root, storage, workspaceId, access, ...rest] = path.split('/');
  if (root !== '' || storage !== 'storage') return false;
  if (workspaceId !== survey.workspaceId) return false;
  if (rest.some(isDots) || rest.at(-1) === '') return false;
  if (rest.length === 1) return access === 'private' || access === 'public';
  const [surveys, surveyId, elements, elementId] = rest;
  return (
    rest.length === 5 &&
    access === 'private' &&
    surveys === 'surveys' &&
    surveyId === survey.id &&
    elements === 'elements' &&
    elementId === questionId
  );
}

function isDots(part: string): boolean {
  return /^(\.|%2e){1,2}$/i.test(part);
}
