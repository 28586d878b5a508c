/**
 * Exchanges the PIN of a survey for the token that its responses need as `pinAuthToken`. Formbricks has no such route,
 * because its own pages do this.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest, forbidden, notFound, tooManyRequests } from '#api/errors.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { createGuesses } from '#api/limits/guesses.ts';
import { closedError } from '#api/resources/surveys/answered.ts';
import { findSurvey } from '#api/resources/surveys/store.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { isPin, pinAuthToken, throwFirst } from './submission-checks.ts';

const Params = Type.Object({ workspaceId: Type.String(), surveyId: Type.String() });
const Entered = Type.Object({ pin: Type.String({ maxLength: 64 }) });
const Token = Type.Object({ data: Type.Object({ pinAuthToken: Type.String() }) });

export const pinRoutes: Routes = async (app, { context }) => {
  const { clock, config, db, signer } = context;
  const guesses = createGuesses('surveys.pin', context);

  app.post(
    '/api/v1/client/:workspaceId/surveys/:surveyId/pin',
    {
      schema: {
        summary: 'Enter the PIN of a survey',
        params: Params,
        body: Entered,
        response: { 200: Token },
      },
      onRequest: loadPathWorkspace(context),
    },
    async (request) => {
      const { surveyId } = request.params;
      const survey = await findSurvey(db, surveyId);
      if (survey === null || survey.workspaceId !== workspaceOf(request).id) {
        throw notFound('Survey', surveyId);
      }
      const { pin } = survey.content;
      throwFirst(() => closedError(survey, clock()));
      if (pin === null) throw badRequest('Survey is not protected by a PIN', { surveyId });
      const guesser = `${survey.id}:${countedAddress(request, config.trustedProxies)}`;
      const seconds = await guesses.begin(guesser);
      if (seconds !== null) throw tooManyRequests(seconds);
      if (!isPin(survey.id, pin, request.body.pin, signer)) {
        throw forbidden('The PIN is wrong', { surveyId });
      }
      await guesses.giveBack(guesser);
      return { data: { pinAuthToken: pinAuthToken(survey.id, pin, signer) } };
    },
  );
};
