/** If a survey verifies addresses, each respondent can finish one response. */
export const respondents: readonly string[] = [
  `alter table "responses" add column "emailDigest" text`,
  `create unique index "responses_emailDigest" on "responses" ("surveyId", "emailDigest")
    where "finished" = 1 and "emailDigest" is not null`,
];
