/**
 * Builds the mail of a follow-up for a finished response. Pure.
 *
 * Mails are plain text. HTML of the author is reduced to its text before answers are inserted, so answers are never
 * read as markup, nor as lines of a header.
 */
import { normalizeEmail } from '#api/auth/password.ts';
import type { Mail } from '#api/mail/mailer.ts';
import type { Answer } from '#api/resources/responses/schema.ts';
import type { Response } from '#api/resources/responses/store.ts';
import type { SurveyContent } from '#api/resources/surveys/schema.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';

type FollowUp = SurveyContent['followUps'][number];
/** The parts of a response that mails show, as it was when its event was written. */
export type Answered = Pick<Response, 'data' | 'endingId' | 'variables'>;

const SUBJECT_LENGTH_MAX = 255;
const BODY_LENGTH_MAX = 100_000;
/** The place of the address in the answer to a question about contact data: first name, last name, email. */
const EMAIL_PART = 2;

export function isTriggered({ trigger }: FollowUp, response: Answered): boolean {
  if (trigger.type === 'response') return true;
  return response.endingId !== null && (trigger.properties?.endingIds ?? []).includes(response.endingId);
}

/** @returns null if there is no recipient: the question was skipped, or its answer is not an address */
export function followUpMail(followUp: FollowUp, survey: BareSurvey, response: Answered): Mail | null {
  const { properties } = followUp.action;
  const to = recipient(properties.to, response);
  if (to === null) return null;
  const replyTo = properties.replyTo.map(normalizeEmail).find((address) => address !== null) ?? null;
  const text = withRecall(textOf(properties.body), response);
  const answers = properties.attachResponseData ? answersOf(survey, response) : [];
  return {
    kind: 'surveyFollowUp',
    workspaceId: survey.workspaceId,
    to,
    replyTo,
    subject: oneLine(withRecall(properties.subject, response)).slice(0, SUBJECT_LENGTH_MAX),
    body: [text, ...answers].join('\n\n').slice(0, BODY_LENGTH_MAX),
  };
}

/**
 * Returns an address, given either directly or by the id of the question or hidden field that has it. Accepts one
 * address.
 */
function recipient(to: string, response: Answered): string | null {
  const written = normalizeEmail(to);
  if (written !== null) return written;
  const answer = answerOf(response, to);
  const address = Array.isArray(answer) ? answer[EMAIL_PART] : answer;
  return typeof address === 'string' ? normalizeEmail(address) : null;
}

/**
 * Replaces `#recall:<id>/fallback:<text>#` by an answer or a variable. A text may recall a long answer thousands of times,
 * so all of them together get no more room than a mail has.
 */
function withRecall(text: string, response: Answered): string {
  let left = BODY_LENGTH_MAX;
  return text.replace(/#recall:([A-Za-z0-9_-]+)\/fallback:([^#]*)#/g, (_, id: string, fallback: string) => {
    const value = answerOf(response, id) ?? variableOf(response, id) ?? '';
    const shown = shownAnswer(value);
    // Editors write spaces in fallbacks as &nbsp; without the ampersand.
    const recalled = (shown === '' ? fallback.replaceAll('nbsp', ' ').trim() : shown).slice(0, left);
    left -= recalled.length;
    return recalled;
  });
}

/** Returns each question with its answer, unless it was skipped. */
function answersOf({ content }: BareSurvey, response: Answered): readonly string[] {
  return content.blocks
    .flatMap(({ elements }) => elements)
    .flatMap(({ id, headline }) => {
      const shown = shownAnswer(answerOf(response, id) ?? '');
      return shown === '' ? [] : [`${oneLine(textOf(headline.default))}\n${shown}`];
    });
}

function variableOf(response: Answered, id: string): string | number | undefined {
  return Object.hasOwn(response.variables, id) ? response.variables[id] : undefined;
}

function answerOf(response: Answered, id: string): Answer | undefined {
  return Object.hasOwn(response.data, id) ? response.data[id] : undefined;
}

function shownAnswer(answer: Answer): string {
  if (Array.isArray(answer)) return answer.filter((part) => part !== '').join(', ');
  if (typeof answer !== 'object') return String(answer);
  return Object.entries(answer)
    .map(([row, column]) => `${row}: ${column}`)
    .join('\n');
}

const entities: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  nbsp: ' ',
  amp: '&',
};

/** Returns the text that HTML shows. Text without markup is unchanged. */
export function textOf(html: string): string {
  return html
    .replace(/<(br|\/p|\/li|\/h[1-6]|\/div)\b[^<>]*>/gi, '\n')
    .replace(/<\/?[a-z][^<>]*>/gi, '')
    .replace(/&(lt|gt|quot|#39|nbsp|amp);/g, (_, name: string) => entities[name] ?? '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}
