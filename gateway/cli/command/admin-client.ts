/** Client of the admin listener of a running gateway. */
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Millis } from '#shared/clock.ts';
import type { CommandContext } from './command.ts';

const TIMEOUT_MS: Millis = 10_000;
/** Status 503 means that the gateway answers, but its store does not. */
const EXIT_BY_STATUS: ReadonlyMap<number, ExitCode> = new Map([
  [400, EXIT.usage],
  [403, EXIT.usage],
  [503, EXIT.unreachable],
]);

export interface AdminAccess {
  /** Origin of the admin listener, such as http://127.0.0.1:9090. */
  readonly gateway: string;
  readonly token: string | undefined;
}

/** Takes the address that is not given from the variables that configure the gateway. */
export function accessOf(
  { gateway, token }: { readonly gateway: string | undefined; readonly token: string | undefined },
  env: CommandContext['env'],
): AdminAccess {
  return { gateway: gateway ?? adminOrigin(env), token };
}

function adminOrigin({ GATEWAY_ADMIN_HOST: host, GATEWAY_ADMIN_PORT: port }: CommandContext['env']): string {
  const isAny = host === undefined || host === '' || host === '0.0.0.0' || host === '::';
  const reached = isAny ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${reached}:${port || '9090'}`;
}

/**
 * @param path such as /api/policies
 * @returns the reply's JSON document
 * @throws CommandError exit 3 if the gateway or its store is unavailable, 2 if the call or the token is refused,
 * otherwise 1 with the gateway's message
 */
export async function askAdmin(
  { gateway, token }: AdminAccess,
  method: 'GET' | 'POST' | 'DELETE' | 'PUT',
  path: string,
  body?: object,
  timeoutMs: Millis = TIMEOUT_MS,
): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(new URL(path, gateway), {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof TypeError && (error as NodeJS.ErrnoException).code === 'ERR_INVALID_URL')
      throw new CommandError(
        `--gateway ${gateway} is not a URL; write http://HOST:PORT of the admin listener`,
        EXIT.usage,
      );
    if ((error as Error).name === 'TimeoutError')
      throw new CommandError(
        `${gateway} gave no answer within ${timeoutMs} ms; it is there, but the gateway is busy or its store hangs`,
        EXIT.unreachable,
      );
    throw new CommandError(
      `no gateway answers on ${gateway}; start it, or name its admin listener with --gateway`,
      EXIT.unreachable,
    );
  }
  if (response.ok) return text === '' ? null : JSON.parse(text);
  if (response.status === 401)
    throw new CommandError(
      `${gateway} asks for a token; give --token or set GATEWAY_ADMIN_TOKEN`,
      EXIT.usage,
    );
  const exitCode = EXIT_BY_STATUS.get(response.status) ?? EXIT.no;
  throw new CommandError(messageIn(text) ?? `${gateway} answered ${response.status}`, exitCode);
}

function messageIn(text: string): string | null {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}
