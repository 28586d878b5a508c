/** All algorithms by their names in the policy file. */
import type { Algorithm, AlgorithmName } from './algorithm.ts';
import { CALENDAR_WINDOW } from './calendar-window.ts';
import { CONCURRENCY } from './concurrency.ts';
import { FIXED_WINDOW } from './fixed-window.ts';
import { SLIDING_WINDOW } from './sliding-window.ts';
import { TOKEN_BUCKET } from './token-bucket.ts';

export const ALGORITHMS: Readonly<Record<AlgorithmName, Algorithm>> = {
  'fixed-window': FIXED_WINDOW,
  'sliding-window': SLIDING_WINDOW,
  'token-bucket': TOKEN_BUCKET,
  concurrency: CONCURRENCY,
  'calendar-window': CALENDAR_WINDOW,
};
