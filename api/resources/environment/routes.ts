/**
 * The state of a workspace, for SDKs.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import { type State, toCachedState } from '#api/cache/state-cache.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { withoutBody } from '#api/http/media.ts';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { languages } from '#api/resources/languages/store.ts';
import { findSurveys, listLiveSurveys } from '#api/resources/surveys/store.ts';
import { findWorkspace, markAppSetUp } from '#api/resources/workspaces/store.ts';
import { isId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { createBookkeeping } from '#api/work/bookkeeping.ts';
import { State as StateReply } from './schema.ts';
import { toState } from './state.ts';

/** SDKs request the state again after this time. It is longer than our cache and HTTP caches store a state. */
const STATE_LIFETIME_MS = 60 * 60 * 1000;
/** All processes build the same bytes for this time, so that the ETag of one is good for all. */
const WINDOW_MS = 5 * 60 * 1000;
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

  const build = async (workspaceId: string): Promise<State> => {
    const windowAt = Math.floor(clock() / WINDOW_MS) * WINDOW_MS;
    const workspace = existing(await findWorkspace(db, workspaceId), 'Workspace', workspaceId);
    if (!workspace.appSetupCompleted) note(workspace.id, () => markAppSetUp(db, workspace.id));
    const live = (await listLiveSurveys(db, workspace.id)).map(({ id }) => id);
    const byId = new Map((await findSurveys(db, live)).map((one) => [one.id, one]));
    const state = toState({
      workspace,
      actionClasses: await actionClasses.listAll(db, workspace.id),
      languages: await languages.listAll(db, workspace.id),
      surveys: live.flatMap((id) => byId.get(id) ?? []),
      expiresAt: toTimestamp(windowAt + STATE_LIFETIME_MS),
      recaptchaSiteKey: recaptcha.siteKey,
      publicUrl: config.publicUrl,
    });
    return toCachedState(JSON.stringify(state));
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
