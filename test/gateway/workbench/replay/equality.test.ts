import t from 'tap';
import { noVerdictDiffers } from './equality.ts';

t.test('5,000 requests', async (t) => noVerdictDiffers(t, 5_000));
