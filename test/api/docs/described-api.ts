/**
 * Starts an API on a socket with its description, sends requests to all operations, and checks each reply against the
 * description.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type ApiOptions, apiKey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { type Description, type Operation, readDescription, type Sent } from '#test/support/description.ts';
import { openHttp } from '#test/support/http-send.ts';
import { bodies, ids } from '#test/support/requests.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { createWorld, logIn, type Request, type World } from '#test/support/world.ts';
import { startReceiver } from '../events/support.ts';

export interface DescribedApi {
  readonly api: TestApi;
  /** Variables that the test sets in addition to the usual ones. */
  readonly env: Readonly<Record<string, string>>;
  readonly origin: string;
  readonly description: Description;
  readonly world: World;
  readonly operations: readonly Operation[];
  /** Sends the request, and fails the test if the description does not allow the reply. */
  ask(t: Test, operation: Operation, request: Request, what: string): Promise<Sent>;
  /** Deletes rows whose number is limited. */
  tidy(): Promise<void>;
  /** The statuses that each operation has answered with. */
  readonly seen: ReadonlyMap<string, ReadonlySet<number>>;
}

/** @param connections maximum number of concurrent requests */
export async function startDescribedApi(
  t: Test,
  options: ApiOptions = {},
  connections?: number,
): Promise<DescribedApi> {
  const hook = await startReceiver(t);
  const env = {
    DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
    SIGNUP_ENABLED: '1',
    SURVEY_URL: 'https://surveys.example/{surveyId}',
    SDK_PATH: sdkFolder(t),
    ...options.env,
  };
  const api = await startApi(t, { ...options, env });
  const origin = await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { close, send } = openHttp(origin, connections);
  t.teardown(close);
  // An API that is still starting refuses every request, so another one describes it.
  const describing = options.isReady === undefined ? api : await startApi(t);
  const description = readDescription((await describing.client('GET', '/api/docs/openapi.json')).json);
  const world = createWorld({
    ...{ send, description, workspaceId, apiKey, bodies, ids, known: { url: hook.url } },
    session: options.isReady === undefined ? await logIn(send) : '',
  });
  const seen = new Map<string, Set<number>>();
  return {
    api,
    env,
    origin,
    description,
    world,
    operations: description.operations,
    seen,
    async tidy() {
      await api.context.db.deleteFrom('webhooks').execute();
    },
    async ask(t, operation, request, what) {
      const reply = await send(request);
      const statuses = seen.get(operation.name) ?? new Set();
      seen.set(operation.name, statuses.add(reply.status));
      const problems = description.problemsOf(operation, reply);
      if (problems.length > 0) t.fail(`${operation.name}, ${what}: ${problems.join('; ')}`);
      if (reply.status === 500) t.fail(`${operation.name}, ${what}: a 500`);
      return reply;
    },
  };
}

/** Creates a folder with scripts like those of an operator. */
function sdkFolder(t: Test): string {
  const folder = temporaryFolder(t);
  for (const name of ['formbricks.umd.cjs', 'surveys.umd.cjs'])
    writeFileSync(join(folder, name), 'void 0;\n');
  return folder;
}
