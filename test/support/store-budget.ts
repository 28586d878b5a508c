/** The longest that a gateway may wait for its store: a slow machine is no outage. Tests about a slow store set their own. */
export const STORE_BUDGET_MS = 10_000;
export const PATIENT_STORE = { GATEWAY_STORE_TIMEOUT_MS: String(STORE_BUDGET_MS) };
