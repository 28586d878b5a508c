/** A finished response as routes pass it on. */
import type { NewResponse } from '#api/resources/responses/write.ts';

export const now = '2026-01-01T00:00:00.000Z';

export const given: NewResponse = {
  finished: true,
  data: { q1: 'x' },
  variables: {},
  ttc: {},
  meta: {},
  displayId: null,
  singleUseId: null,
  endingId: null,
  language: null,
  createdAt: now,
  updatedAt: now,
  respondent: null,
};
