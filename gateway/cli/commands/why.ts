/** `why ID`: shows why a request was refused. */

import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, command, STANDARD_INPUT } from '#gateway/cli/command/command.ts';
import { readable } from '#gateway/cli/command/log-options.ts';
import type { ToldDecision } from '#gateway/operate/admin/decisions-routes.ts';
import { isDecisionId } from '#gateway/refusals/decision-ids.ts';
import { portionsOf } from '#gateway/workbench/replay/log-text.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** The fields of a line, as observe/access-log writes them. */
type RefusalLine = Readonly<Record<string, unknown>>;

const FACT_WIDTH = 'Retry at: '.length;

export const WHY = command({
  describe: 'Why was this request refused?',
  options: {
    id: {
      isPositional: true,
      isRequired: true,
      describe: 'x-gateway-decision of the refused reply, or "decision" of its body',
    },
    ...ADMIN_OPTIONS,
    log: {
      isList: true,
      describe:
        'Access log of the gateway, also compressed with gzip, which has the rest; - for standard input',
    },
  },
  examples: [
    ['$0 why 7k2q9x0m4c5t00000001hbd3vz', 'Shows the policy, its line, the counted client and its usage'],
  ],
  async run({ id, json, log, ...access }, { terminal, env }) {
    if (!isDecisionId(id)) {
      throw new CommandError(
        `"${id}" is not a decision id; take the value of x-gateway-decision from the refused reply`,
        EXIT.usage,
      );
    }
    const line = await lineOf(id, log);
    const asked = askAdmin(accessOf(access, env), 'GET', `/api/decisions/${id}`) as Promise<ToldDecision>;
    // The line is an answer too, if the gateway does not know the id or cannot be reached.
    const record = await (line === null ? asked : asked.catch(() => null));
    if (json) terminal.json(line === null ? record : { ...record, log: line });
    else {
      for (const sentence of record === null ? [] : sentences(record)) terminal.line(sentence);
      for (const sentence of line === null ? [] : linesOf(line)) terminal.line(sentence);
    }
    return EXIT.ok;
  },
});

/** @returns null without --log @throws CommandError if no log has the line */
async function lineOf(id: string, logs: readonly string[]): Promise<RefusalLine | null> {
  if (logs.length === 0) return null;
  try {
    for (const log of logs)
      for await (const lines of portionsOf(log === STANDARD_INPUT ? process.stdin : log))
        for (const line of lines) {
          const found = line.includes(`"${id}"`) ? fieldsOf(line) : null;
          if (found?.id === id) return found;
        }
  } catch (error) {
    throw readable(error);
  }
  throw new CommandError(`${logs.join(', ')} has no line with the id ${id}; name another log`, EXIT.no);
}

/** @returns null if it is no line of the access log, such as one to which another program has added text */
function fieldsOf(line: string): RefusalLine | null {
  try {
    const fields: unknown = JSON.parse(line);
    return typeof fields === 'object' ? (fields as RefusalLine | null) : null;
  } catch {
    return null;
  }
}

/** Writes the fields of a line, one below the other. */
function linesOf(line: RefusalLine): string[] {
  const fields = Object.entries(line).map(
    ([name, value]) => `  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return ['', 'The access log has:', ...fields];
}

function sentences({ what, reasons, facts, advice }: ToldDecision): string[] {
  const told = facts.map(([name, value]) => `${`${name}:`.padEnd(FACT_WIDTH)}${value}`);
  return [what, '', ...reasons, ...told, '', advice];
}
