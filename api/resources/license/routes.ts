/**
 * The licence of this service. There is none to check, which the reply reports.
 *
 * Callers: sessions, limited per user.
 */
import { Type } from 'typebox';
import { forPeople } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { toTimestamp } from '#api/values/timestamps.ts';

export const licenseRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v1/license/recheck',
    {
      schema: {
        summary: 'Check the licence again',
        response: {
          200: Type.Object({
            data: Type.Object({ status: Type.String(), message: Type.String(), checkedAt: Type.String() }),
          }),
        },
      },
      config: { ...forPeople, limit: 'actions.licenseRecheck' },
    },
    async () => ({
      data: {
        status: 'not_required',
        message: 'This service runs without a licence: every feature is there, and no server was asked',
        checkedAt: toTimestamp(context.clock()),
      },
    }),
  );
};
