/** In the order of the help text. */
import type { AddCommand } from '../command.ts';
import { addCheck } from './check.ts';

export const COMMANDS: readonly AddCommand[] = [addCheck];
