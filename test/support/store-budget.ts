/**
 * The longest time that a gateway waits for its store, because a slow machine is no outage. Tests of slow stores set
 * their own.
 */
export const STORE_BUDGET_MS = 10_000;

/** @returns the environment with this budget in the address of the store, unless the address already has one */
export function patiently(env: Readonly<Record<string, string>>): Record<string, string> {
  const { GATEWAY_REDIS_URL: url = '' } = env;
  if (url === '' || url.includes('timeout_ms=')) return { ...env };
  const mark = url.includes('?') ? '&' : '?';
  return { ...env, GATEWAY_REDIS_URL: `${url}${mark}timeout_ms=${STORE_BUDGET_MS}` };
}
