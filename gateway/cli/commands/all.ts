/** In the order of the help text. */
import type { AddCommand } from '../command.ts';
import { addBan } from './ban.ts';
import { addCheck } from './check.ts';
import { addDiff } from './diff.ts';
import { addDoctor } from './doctor.ts';
import { addExplain } from './explain.ts';
import { addForecast } from './forecast.ts';
import { addImport } from './import.ts';
import { addInspect } from './inspect.ts';
import { addProve } from './prove.ts';
import { addReplay } from './replay.ts';
import { addReset } from './reset.ts';
import { addSuggest } from './suggest.ts';
import { addTop } from './top.ts';
import { addUnban } from './unban.ts';
import { addWhy } from './why.ts';

export const COMMANDS: readonly AddCommand[] = [
  addCheck,
  addExplain,
  addDiff,
  addImport,
  addForecast,
  addProve,
  addDoctor,
  addInspect,
  addReset,
  addBan,
  addUnban,
  addTop,
  addReplay,
  addSuggest,
  addWhy,
];
