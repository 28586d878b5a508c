/** A survey as the management API returns it. Pure. */
import { toQuestions } from './blocks.ts';
import type { Survey } from './store.ts';

export function toSurveyReply(survey: Survey) {
  const { content, languages, triggers, segment, ...row } = survey;
  const { id, workspaceId: environmentId } = row;
  const { overwrites, ...own } = content;
  return {
    ...row,
    ...own,
    environmentId,
    // Clients expect it. Nothing archives surveys.
    archivedAt: null,
    questions: toQuestions(content.blocks),
    languages: languages.map(({ language, ...flags }) => ({ language: language.code, ...flags })),
    triggers: triggers.map((actionClass) => ({ actionClass: { ...actionClass, environmentId } })),
    segment: segment === null ? null : { ...segment, environmentId, surveys: [id] },
    workspaceOverwrites: overwrites,
    projectOverwrites: overwrites,
    productOverwrites: overwrites,
  };
}
