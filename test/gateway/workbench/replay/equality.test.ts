import t from 'tap';
import { noVerdictDiffers } from './equality.ts';

t.test('replay decides 5,000 logged requests as the gateway did', async (t) => noVerdictDiffers(t, 5_000));
