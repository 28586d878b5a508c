/** Of the respondents whom a survey knows by a verified address, each finishes one response. */
export const respondents: readonly string[] = [
  `alter table "responses" add column "emailDigest" text`,
  `create unique index "responses_emailDigest" on "responses" ("surveyId", "emailDigest")
    where "finished" = 1 and "emailDigest" is not null`,
];
