/** Writes the help of a program and its commands. */
import type { Command, Option, Program } from './command.ts';

type Row = readonly [left: string, right: string];

const GLOBAL: readonly Row[] = [
  ['--json', 'One JSON document instead of tables'],
  ['-h, --help', 'Shows this help'],
];

function usageOf<C>(program: string, name: string, { options }: Command<C>): string {
  const [argument, option] = Object.entries(options).find(([, { isPositional }]) => isPositional) ?? [];
  if (option === undefined) return `${program} ${name}`;
  const text = option.isList === true ? `${argument}..` : argument;
  return `${program} ${name} ${option.isRequired === true ? `<${text}>` : `[${text}]`}`;
}

export function commandHelp<C>(program: string, name: string, command: Command<C>): string {
  const { describe, options, examples = [] } = command;
  const rows = (isWanted: (option: Option) => boolean): readonly Row[] =>
    Object.entries(options)
      .filter(([, option]) => isWanted(option))
      .map(([title, option]) => [nameOf(title, option), describeOption(option)]);
  // Each example is a line of its own, which people can copy, below what it does.
  const lines = examples.map(([line, what]) => `  # ${what}\n  ${line.replace('$0', program)}`);
  return [
    `${usageOf(program, name, command)}\n\n${describe}`,
    ...section(
      'Arguments',
      rows(({ isPositional }) => isPositional === true),
    ),
    ...section('Options', [...rows(({ isPositional }) => isPositional !== true), ...GLOBAL]),
    ...(lines.length === 0 ? [] : [`Examples:\n${lines.join('\n')}`]),
  ].join('\n\n');
}

export async function overview<C>({ name: called, about, groups, epilogue }: Program<C>): Promise<string> {
  const sections: string[] = [];
  for (const [title, commands] of Object.entries(groups)) {
    const rows: Row[] = [];
    for (const [name, load] of Object.entries(commands)) {
      const command = await load();
      rows.push([usageOf(called, name, command), command.describe]);
    }
    sections.push(...section(title, rows));
  }
  const options = section('Options', [...GLOBAL, ['--version', 'Shows the version']]);
  return [`${called} <command>\n\n${about}`, ...sections, ...options, epilogue].join('\n\n');
}

/** @returns no section without rows */
function section(title: string, rows: readonly Row[]): readonly string[] {
  if (rows.length === 0) return [];
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [[`${title}:`, ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`)].join('\n')];
}

function nameOf(title: string, { isPositional, short }: Option): string {
  if (isPositional === true) return title;
  return `${short === undefined ? '' : `-${short}, `}--${title}`;
}

function describeOption(option: Option): string {
  const { describe, isRequired, isPositional, isList, choices, variable, default: initial } = option;
  const remarks: string[] = [];
  if (isRequired === true && isPositional !== true) remarks.push('required');
  if (isList === true) remarks.push('may be given several times');
  if (choices !== undefined) remarks.push(`one of ${choices.join(', ')}`);
  if (variable !== undefined) remarks.push(`default: ${variable}`);
  if (initial !== undefined) remarks.push(`${variable === undefined ? 'default:' : 'or'} ${initial}`);
  return remarks.length === 0 ? describe : `${describe}  [${remarks.join(', ')}]`;
}
