/**
 * The bodies that create and change a survey, for the description. content.ts parses them by hand, with better errors.
 */
import { Type } from 'typebox';
import { Localized, Nullable } from '#api/values/schemas.ts';
import { SurveyContent } from './schema.ts';

const { overwrites, ...content } = SurveyContent.properties;

export const SurveyLanguage = Type.Object({
  language: Type.String(),
  default: Type.Boolean(),
  enabled: Type.Boolean(),
});

const NewQuestion = Type.Object(
  { id: Type.String(), type: Type.String(), headline: Localized },
  { description: 'With the fields of its type, see Question. A localized text may be a plain string.' },
);

const surveyFields = Type.Partial(
  Type.Object({
    ...content,
    welcomeCard: Type.Partial(content.welcomeCard),
    questions: Type.Array(NewQuestion),
    languages: Type.Array(SurveyLanguage),
    triggers: Type.Array(Type.Object({ actionClass: Type.Unknown() })),
    segmentId: Nullable(Type.String()),
    workspaceOverwrites: overwrites,
    projectOverwrites: overwrites,
    productOverwrites: overwrites,
  }),
).properties;

export const NewSurvey = Type.Object(
  {
    ...surveyFields,
    workspaceId: Type.Optional(Type.String()),
    environmentId: Type.Optional(Type.String()),
    name: content.name,
  },
  { description: 'Either of the two scope ids, and either `questions` or `blocks`.' },
);

export const SurveyChange = Type.Object(surveyFields, {
  description: 'What is absent stays; `questions` replace `blocks`.',
});
