/**
 * The deliveries of a webhook: lists them, sends one again, and tests the webhook. Formbricks has no such routes.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST to write.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest, conflict, existing } from '#api/errors.ts';
import { attempt } from '#api/events/deliver.ts';
import { makeDueAgain } from '#api/events/redeliver.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { isId, newId } from '#api/ids.ts';
import { withFallback } from '#api/limits/fallback-counters.ts';
import { reachOf } from '#api/resources/organizations/store.ts';
import { findWebhook } from '#api/resources/webhooks/store.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { OneOf } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Seconds } from '#shared/clock.ts';
import { DeliveryReply, shown, TestReply } from './schema.ts';
import { findDelivery, listDeliveries } from './store.ts';

const DELIVERIES_DEFAULT = 25;
const DELIVERIES_MAX = 100;
/** One test at a time for each webhook, so that nobody uses this service as a load generator. */
const TEST = 'webhooks.test';
/** A test ends much sooner. After this time, a test whose process died no longer counts. */
const TEST_SECONDS_MAX: Seconds = 15;
/** The exact body, without `data`, because receivers recognise a test by it. */
const TEST_BODY = '{"event":"testEndpoint"}';
/** Hosts of Discord, which answers 400 to everything that is not a chat message. */
const DISCORD = /^(.*\.)?(discord|discordapp)\.com$/;

const Params = Type.Object({ webhookId: Type.String() });
const DeliveryParams = Type.Object({ webhookId: Type.String(), deliveryId: Type.String() });

export const deliveryRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, outbox, counters } = context;
  const webhook = workspaceRow({ db, type: 'Webhook', param: 'webhookId', find: findWebhook });
  const tests = withFallback(counters, clock);

  app.get(
    '/api/v1/webhooks/:webhookId/deliveries',
    {
      schema: {
        params: Params,
        querystring: Type.Object({
          ...ListQuery.properties,
          status: Type.Optional(OneOf(['pending', 'delivered', 'parked'])),
        }),
        response: { 200: Type.Object({ data: Type.Array(DeliveryReply) }) },
      },
      onRequest: webhook.load,
    },
    async (request, reply) => {
      const { id } = webhook.of(request);
      const { status = null } = request.query;
      const options = { limitMax: DELIVERIES_MAX, limitDefault: DELIVERIES_DEFAULT };
      return {
        data: await readPage({ request, reply }, request.query, options, (page) =>
          listDeliveries(db, id, { page, status }),
        ),
      };
    },
  );

  app.post(
    '/api/v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
    {
      schema: { params: DeliveryParams, response: { 200: Type.Object({ data: DeliveryReply }) } },
      config: { refuses: ['not_found'] },
      onRequest: webhook.load,
    },
    async (request) => {
      const { deliveryId } = request.params;
      const { id: webhookId } = webhook.of(request);
      const now = toTimestamp(clock());
      const isThere = isId(deliveryId) && (await makeDueAgain(db, { webhookId, deliveryId, now }));
      const delivery = existing(
        isThere ? await findDelivery(db, webhookId, deliveryId) : null,
        'Delivery',
        deliveryId,
      );
      outbox.notify();
      return { data: delivery };
    },
  );

  /** Reports how the receiver answered. A receiver that fails is a result, not an error of this request. */
  app.post(
    '/api/v1/webhooks/:webhookId/test',
    {
      schema: { params: Params, response: { 200: Type.Object({ data: TestReply }) } },
      config: { refuses: ['bad_request', 'conflict'] },
      onRequest: webhook.load,
    },
    async (request) => {
      const { id, url, secret, workspaceId } = webhook.of(request);
      if (URL.canParse(url) && DISCORD.test(new URL(url).hostname)) {
        throw badRequest('Discord webhooks are not supported', { url: 'Discord webhooks are not supported' });
      }
      try {
        // Count first and check then: of two concurrent tests, the one that was counted first continues.
        const { used } = await tests.use(TEST, id, TEST_SECONDS_MAX);
        if (used > 1) throw conflict('This webhook is being tested; wait for the result');
        const reach = await reachOf(db, workspaceId);
        const message = { id: newId(random), url, secret, body: TEST_BODY, reach };
        const { isDelivered, duration: durationMs, ...result } = await attempt(context, message);
        return { data: { isDelivered, durationMs, ...shown(result) } };
      } finally {
        await tests.giveBack(TEST, id);
      }
    },
  );
};
