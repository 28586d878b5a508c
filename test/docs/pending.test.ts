/** Paragraphs about unfinished features are marked as pending, and the mark must be removed when the feature exists. */
import t from 'tap';
import { PENDING, pages } from './pages.ts';

for (const { file, text } of pages()) {
  const marks = text
    .split('\n')
    .flatMap((line, i) => (PENDING.test(line) ? [`${file}:${i + 1}: ${line}`] : []));
  t.strictSame(marks, [], `${file} has no marks of unfinished features`);
}
