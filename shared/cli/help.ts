/** Writes the help of a program and its commands. */
import type { Command, Option } from './command.ts';

type Row = readonly [left: string, right: string];

const GLOBAL: readonly Row[] = [
  ['--json', 'One JSON document instead of tables'],
  ['-h, --help', 'Shows this help'],
];

export function usageOf<C>(program: string, name: string, { options }: Pick<Command<C>, 'options'>): string {
  const positional = Object.entries(options).find(([, { isPositional }]) => isPositional === true);
  if (positional === undefined) return `${program} ${name}`;
  const [argument, { isRequired, isList }] = positional;
  const text = isList === true ? `${argument}..` : argument;
  return `${program} ${name} ${isRequired === true ? `<${text}>` : `[${text}]`}`;
}

export function commandHelp<C>(program: string, name: string, command: Command<C>): string {
  const { describe, options, examples = [] } = command;
  const rows = Object.entries(options);
  const positionals = rows.filter(([, { isPositional }]) => isPositional === true);
  const named = rows.filter(([, { isPositional }]) => isPositional !== true);
  return sections([
    `${usageOf(program, name, command)}\n\n${describe}`,
    section(
      'Arguments',
      positionals.map(([argument, option]) => [argument, describeOption(option)]),
    ),
    section('Options', [
      ...named.map(([option, row]): Row => {
        const short = row.short === undefined ? '' : `-${row.short}, `;
        return [`${short}--${option}`, describeOption(row)];
      }),
      ...GLOBAL,
    ]),
    // Each example is a line of its own, which people can copy, below what it does.
    examples.length === 0
      ? ''
      : `Examples:\n${examples.map(([line, what]) => `  # ${what}\n  ${line.replace('$0', program)}`).join('\n')}`,
  ]);
}

/** @param groups rows of commands by the title of a group */
export function overview(about: string, groups: Readonly<Record<string, readonly Row[]>>, epilogue: string) {
  return sections([
    about,
    ...Object.entries(groups).map(([title, rows]) => section(title, rows)),
    section('Options', [...GLOBAL, ['--version', 'Shows the version']]),
    epilogue,
  ]);
}

function sections(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n');
}

function section(title: string, rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [`${title}:`, ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`)].join('\n');
}

function describeOption(option: Option): string {
  const { describe, isRequired, isPositional, isList, choices, variable, default: initial } = option;
  const remarks = [
    isRequired === true && isPositional !== true ? 'required' : null,
    isList === true ? 'may be given several times' : null,
    choices === undefined ? null : `one of ${choices.join(', ')}`,
    variable === undefined ? null : `default: ${variable}`,
    initial === undefined ? null : `${variable === undefined ? 'default:' : 'or'} ${initial}`,
  ].filter((remark) => remark !== null);
  return remarks.length === 0 ? describe : `${describe}  [${remarks.join(', ')}]`;
}
