/**
 * The state of a workspace, for SDKs.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import { type State, toCachedState, windowOf } from '#api/cache/state-cache.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { withoutBody } from '#api/http/media.ts';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { interactionsOf, withReferred } from '#api/resources/segments/interactions.ts';
import { findSurveys, listLiveSurveys } from '#api/resources/surveys/store.ts';
import { findWorkspace, markAppSetUp } from '#api/resources/workspaces/store.ts';
import { STATE_DOCUMENTS_BYTES_MAX } from '#api/values/content-limits.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { createBookkeeping } from '#api/work/bookkeeping.ts';
import { fitting, toFittingState } from './fit.ts';
import { State as StateReply } from './schema.ts';

/**
 * SDKs request the state again after this time, minus the age of the window. It is longer than our cache and HTTP
 * caches store a state.
 */
const STATE_LIFETIME_MS = 60 * 60 * 1000;
const CACHEABLE = 'public, s-maxage=60, max-age=60, stale-while-revalidate=60, stale-if-error=60';

const paths = [
  '/api/v1/client/:workspaceId/environment',
  '/api/v2/client/:workspaceId/environment',
  '/api/v1/client/:workspaceId/app/environment',
  '/api/v1/client/:workspaceId/website/environment',
];

export const environmentRoutes: Routes = async (app, { context }) => {
  const { db, clock, config, recaptcha, states } = context;
  const note = createBookkeeping();

  const build = async (scopeId: string): Promise<State> => {
    const now = clock();
    const workspace = existing(await findWorkspace(db, scopeId), 'Workspace', scopeId);
    // The other id of the workspace finds the same state.
    if (workspace.id !== scopeId) return states.get(workspace.id, () => build(workspace.id));
    if (!workspace.appSetupCompleted) note(workspace.id, () => markAppSetUp(db, workspace.id));
    const { beginsAt, endsAt } = windowOf(workspace.id, now);
    const live = await listLiveSurveys(db, workspace.id);
    const read = fitting(live, STATE_DOCUMENTS_BYTES_MAX, ({ bytes }) => bytes);
    const byId = new Map(
      (
        await findSurveys(
          db,
          read.map(({ id }) => id),
        )
      ).map((one) => [one.id, one]),
    );
    const surveys = read.flatMap(({ id }) => byId.get(id) ?? []);
    const segments = surveys.flatMap(({ segment }) => segment ?? []);
    const { json, leftOut } = toFittingState({
      workspace,
      actionClasses: await actionClasses.listAll(db, workspace.id),
      surveys,
      interactions: interactionsOf(await withReferred(db, segments)),
      expiresAt: toTimestamp(beginsAt + STATE_LIFETIME_MS),
      recaptchaSiteKey: recaptcha.siteKey,
      publicUrl: config.publicUrl,
    });
    const notRead = live.filter((one) => !read.includes(one)).map(({ id }) => id);
    if (notRead.length + leftOut.length > 0) {
      app.log.warn(
        { workspaceId: workspace.id, leftOut: [...notRead, ...leftOut] },
        'surveys or action classes are left out of the state of a workspace, because it would be too large',
      );
    }
    return toCachedState(json, endsAt);
  };

  for (const path of paths) {
    app.get(
      path,
      {
        schema: {
          summary: 'Read the state of a workspace: what SDKs show to whom',
          params: Type.Object({ workspaceId: Type.String() }),
          response: {
            200: { ...StateReply, description: 'May be cached for a minute.' },
            304: withoutBody('Not changed since the reply whose `etag` came as `if-none-match`.'),
          },
        },
      },
      async (request, reply) => {
        const { workspaceId } = request.params;
        if (!isId(workspaceId)) throw badRequest('Invalid ID format');
        const { body, etag } = await states.get(workspaceId, () => build(workspaceId));
        reply.header('cache-control', CACHEABLE).header('etag', etag);
        if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
        // The bytes are already JSON, so Fastify sends them unchanged.
        reply.header('content-type', 'application/json; charset=utf-8').send(body);
        return reply;
      },
    );
  }
};
