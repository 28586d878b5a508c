/** Parses the `docker run` lines of a page, in the forms that the pages use. */
import type { Page } from './pages.ts';

type Pair = readonly [string, string];

interface DockerRun {
  readonly line: string;
  /** Port outside and inside, without addresses. */
  readonly ports: readonly Pair[];
  readonly variables: readonly Pair[];
  /** Folder of the checkout, and folder in the container. */
  readonly volumes: readonly Pair[];
  readonly image: string;
  /** Empty for the command of the image. */
  readonly command: readonly string[];
}

const WITH_VALUE = ['-p', '-v', '-e', '--add-host', '--name'];

export function dockerRuns(page: Page): readonly DockerRun[] {
  return page.blocks
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.replaceAll(/\\\n\s*/g, '').split('\n'))
    .filter((line) => line.startsWith('docker run '))
    .map(readRun);
}

function readRun(line: string): DockerRun {
  const words = line.replace(/ #.*/, '').split(/\s+/).slice(2);
  const given: Pair[] = [];
  while (words[0]?.startsWith('-') === true) {
    const option = words.shift() ?? '';
    given.push([option, WITH_VALUE.includes(option) ? (words.shift() ?? '') : '']);
  }
  const valuesOf = (option: string): readonly string[] =>
    given.filter(([name]) => name === option).map(([, value]) => value);
  const [image = '', ...command] = words;
  return {
    line,
    ports: valuesOf('-p').map((value) => pair(value.split(':').slice(-2))),
    variables: valuesOf('-e').map((value) => pair(value.split('='))),
    volumes: valuesOf('-v').map((value) => pair(value.replaceAll('"', '').replace('$PWD/', '').split(':'))),
    image,
    command,
  };
}

function pair([first = '', second = '']: readonly string[]): Pair {
  return [first, second];
}
