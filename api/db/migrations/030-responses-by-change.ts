/**
 * Lists of responses in the order of their last change, of a workspace and of a survey. With `createdAt` the indexes have
 * all that such a list needs, so skipped rows are not read.
 */
export const responsesByChange: readonly string[] = [
  `create index "responses_workspaceChanged" on "responses" ("workspaceId", "updatedAt", "id", "createdAt")`,
  `create index "responses_surveyChanged" on "responses" ("surveyId", "updatedAt", "id", "createdAt")`,
];
