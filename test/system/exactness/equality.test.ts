import t from 'tap';
import { noVerdictDiffers } from '#test/gateway/workbench/replay/equality.ts';

t.test('40,000 requests', async (t) => noVerdictDiffers(t, 40_000));
