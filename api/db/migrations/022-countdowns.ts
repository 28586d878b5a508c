/** How many more finished responses a survey with `autoComplete` can get before they must be counted again. */
export const countdowns: readonly string[] = [
  `create table "countdowns" (
    "surveyId" text primary key references "surveys" ("id") on delete cascade,
    "autoComplete" integer not null,
    "skips" integer not null
  )`,
];
