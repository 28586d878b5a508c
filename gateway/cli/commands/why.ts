/** `why ID`: shows why a request was refused. */
import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, command } from '#gateway/cli/command/command.ts';
import type { ToldDecision } from '#gateway/operate/admin/decisions-routes.ts';
import { isDecisionId } from '#gateway/refusals/decision-ids.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

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
  },
  examples: [
    ['$0 why 7k2q9x0m4c5t00000001hbd3vz', 'Shows the policy, its line, the counted client and its usage'],
  ],
  async run({ id, json, ...access }, { terminal, env }) {
    if (!isDecisionId(id))
      throw new CommandError(
        `"${id}" is not a decision id; take the value of x-gateway-decision from the refused reply`,
        EXIT.usage,
      );
    const told = (await askAdmin(accessOf(access, env), 'GET', `/api/decisions/${id}`)) as ToldDecision;
    if (json) terminal.json(told);
    else for (const sentence of sentences(told)) terminal.line(sentence);
    return EXIT.ok;
  },
});

function sentences({ what, reasons, facts, advice }: ToldDecision): string[] {
  const told = facts.map(([name, value]) => `${`${name}:`.padEnd(FACT_WIDTH)}${value}`);
  return [what, '', ...reasons, ...told, '', advice];
}
