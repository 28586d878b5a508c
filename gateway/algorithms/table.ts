/** All algorithms by their names in the policy file. */
import type { Algorithm, AlgorithmName } from './algorithm.ts';
import { CONCURRENCY } from './concurrency.ts';
import { SLIDING_WINDOW } from './sliding-window.ts';
import { TOKEN_BUCKET } from './token-bucket.ts';
import { CALENDAR_WINDOW, FIXED_WINDOW } from './windows.ts';

export const ALGORITHMS: Readonly<Record<AlgorithmName, Algorithm>> = {
  'fixed-window': FIXED_WINDOW,
  'sliding-window': SLIDING_WINDOW,
  'token-bucket': TOKEN_BUCKET,
  concurrency: CONCURRENCY,
  'calendar-window': CALENDAR_WINDOW,
};
