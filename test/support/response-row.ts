/** Makes rows of responses, for tests that need more of them than the API could create in time. */
import { workspaceId } from './api-app.ts';

const at = '2026-01-01T00:00:00.000Z';

/** Returns a response without answers, finished unless said otherwise. */
export function responseRow(id: string, surveyId: string, finished: 0 | 1 = 1) {
  return {
    id,
    createdAt: at,
    updatedAt: at,
    workspaceId,
    surveyId,
    contactId: null,
    displayId: null,
    endingId: null,
    finished,
    data: '{}',
    variables: '{}',
    ttc: '{}',
    meta: '{}',
    contactAttributes: null,
    singleUseId: null,
    language: null,
  };
}
