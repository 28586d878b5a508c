import t from 'tap';
import { noVerdictDiffers } from '#test/gateway/workbench/replay/equality.ts';

t.test('replay decides 40,000 logged requests as the gateway did', async (t) => noVerdictDiffers(t, 40_000));
