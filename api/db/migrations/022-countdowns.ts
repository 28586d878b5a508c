/** How many finished responses a survey with `autoComplete` may get before they are counted again. */
export const countdowns: readonly string[] = [
  `create table "countdowns" (
    "surveyId" text primary key references "surveys" ("id") on delete cascade,
    "autoComplete" integer not null,
    "skips" integer not null
  )`,
];
