/** Finds the events of a response, to remove a deleted contact from them. */
export const eventsOfResponses: readonly string[] = [
  `create index "events_responseId" on "events" ("responseId")`,
];
