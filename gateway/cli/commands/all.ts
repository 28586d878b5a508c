/** In the order of the help text. */
import type { AddCommand } from '../command.ts';
import { addCheck } from './check.ts';
import { addDiff } from './diff.ts';
import { addExplain } from './explain.ts';
import { addProve } from './prove.ts';
import { addReplay } from './replay.ts';
import { addSuggest } from './suggest.ts';
import { addWhy } from './why.ts';

export const COMMANDS: readonly AddCommand[] = [
  addCheck,
  addExplain,
  addDiff,
  addProve,
  addReplay,
  addSuggest,
  addWhy,
];
