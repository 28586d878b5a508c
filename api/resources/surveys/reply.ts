/** A survey as the management API returns it. Pure. */
import type { ActionClass } from '#api/resources/action-classes/store.ts';
import type { Segment } from '#api/resources/segments/store.ts';
import { toQuestions } from './blocks.ts';
import type { Survey } from './store.ts';

export function toSurveyReply(survey: Survey) {
  const { overwrites, ...content } = survey.content;
  return {
    id: survey.id,
    createdAt: survey.createdAt,
    updatedAt: survey.updatedAt,
    workspaceId: survey.workspaceId,
    environmentId: survey.environmentId,
    archivedAt: survey.archivedAt,
    ...content,
    questions: toQuestions(survey.content.blocks),
    languages: survey.languages.map((item) => ({
      language: item.language.code,
      default: item.default,
      enabled: item.enabled,
    })),
    triggers: survey.triggers.map((actionClass) => ({
      actionClass: toActionClassReply(actionClass, survey.environmentId),
    })),
    segment: survey.segment === null ? null : toSegmentReply(survey.segment, survey),
    workspaceOverwrites: overwrites,
    projectOverwrites: overwrites,
    productOverwrites: overwrites,
  };
}

/** Returns the reply to a deletion: the survey's own fields, without the second view of its blocks. */
export function toDeletedSurveyReply(survey: Survey) {
  const {
    languages: _languages,
    followUps: _followUps,
    workspaceOverwrites: _workspace,
    projectOverwrites: _project,
    productOverwrites: _product,
    ...reply
  } = toSurveyReply(survey);
  return { ...reply, questions: [] };
}

function toActionClassReply(actionClass: ActionClass, environmentId: string) {
  return { ...actionClass, environmentId };
}

function toSegmentReply(segment: Segment, survey: Survey) {
  return { ...segment, environmentId: survey.environmentId, surveys: [survey.id] };
}
