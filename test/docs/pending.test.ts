/** No page describes what is not there yet: such a paragraph is marked, and the mark goes with the day it becomes true. */
import t from 'tap';
import { PENDING, pages } from './pages.ts';

for (const { file, text } of pages()) {
  const marks = text
    .split('\n')
    .flatMap((line, i) => (PENDING.test(line) ? [`${file}:${i + 1}: ${line}`] : []));
  t.strictSame(marks, [], `${file} describes what is there`);
}
